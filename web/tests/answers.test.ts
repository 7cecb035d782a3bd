/** What stands beside answers: words at the edge of the page, versions side by side. */

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { versionOf } from "../src/conversation/compare";
import { attempt, toasts } from "../src/state/toasts.svelte";
import { call, message } from "./samples";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("what went wrong", () => {
  it("is told, and goes by itself after a while", async () => {
    await attempt(() => Promise.reject(new Error("the arguments do not fit")));
    expect(toasts.map(({ text, kind }) => [text, kind])).toEqual([["the arguments do not fit", "error"]]);
    vi.advanceTimersByTime(10_000);
    expect(toasts).toEqual([]);
  });
});

describe("a version of an answer", () => {
  it("took as long as its own turn, also where it began with calls of an earlier one", () => {
    const copied = call("c", { state: "completed", started: 10, ended: 12 });
    const version = [
      message("a", "q", "assistant", { created: 700, parts: [copied, call("d", { state: "completed", started: 701, ended: 702 })] }),
      message("b", "a", "assistant", { created: 703 }),
    ];
    expect(versionOf(version).seconds).toBe(3);
  });
});
