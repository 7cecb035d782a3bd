import { flushSync } from "svelte";
import { afterEach, expect, test, vi } from "vitest";

import { type Pace, paced } from "../src/markdown/pace.svelte";

const LONG = "🙂 of words ".repeat(20_000);

let frames: FrameRequestCallback[] = [];
let end = (): void => {};

function reading(begun: string, streaming: boolean): { pace: Pace; arrives: (text: string) => void } {
  vi.stubGlobal("requestAnimationFrame", (frame: FrameRequestCallback) => frames.push(frame));
  let text = $state(begun);
  let pace: Pace | undefined;
  end = $effect.root(() => {
    pace = paced(() => text, streaming, () => 0);
  });
  flushSync();
  return { pace: pace as Pace, arrives: (more) => flushSync(() => (text = more)) };
}

function frame(): void {
  const due = frames;
  frames = [];
  flushSync(() => due.forEach((run) => run(0)));
}

afterEach(() => {
  end();
  frames = [];
  vi.unstubAllGlobals();
});

test("what comes at the speed of a model is shown as it comes", () => {
  const { pace, arrives } = reading("", true);
  for (let length = 500; length < 20_000; length += 500) {
    arrives(LONG.slice(0, length));
    expect(pace.shown.length).toBe(length);
    expect(pace.behind).toBe(false);
    frame();
  }
});

test("what comes at once is shown in steps, and whole in the end", () => {
  const { pace, arrives } = reading("", true);
  arrives(LONG);
  let before = 0;
  let steps = 0;
  for (; pace.behind; steps++) {
    expect(pace.shown.length - before).toBeLessThan(LONG.length / 20);
    expect(pace.shown).not.toMatch(/[\uD800-\uDBFF]$/);
    before = pace.shown.length;
    frame();
  }
  expect(steps).toBeGreaterThan(20);
  expect(pace.shown).toBe(LONG);
});

test("what is there already is shown at once", () => {
  expect(reading(LONG, false).pace.shown).toBe(LONG);
  end();
  expect(reading(LONG, true).pace.shown).toBe(LONG);
});
