import { flushSync } from "svelte";
import { afterEach, expect, test } from "vitest";

import { PromptChoice } from "../src/composer/prompts.svelte";
import { catalog } from "../src/state/catalog.svelte";

let end = (): void => {};

/** Somebody who has typed this, where there are three prompts. */
async function typing(begun: string): Promise<{ choice: PromptChoice; types: (text: string) => void; text: () => string }> {
  catalog.prompts = ["alpha", "beta", "gamma"].map((name) => ({ name, text: `${name} words`, shared: false }));
  let text = $state(begun);
  let choice: PromptChoice | undefined;
  end = $effect.root(() => {
    choice = new PromptChoice(() => text, (words) => (text = words));
  });
  await (choice as unknown as PromptChoice).load();
  flushSync();
  return { choice: choice as unknown as PromptChoice, types: (words) => flushSync(() => (text = words)), text: () => text };
}

const press = (choice: PromptChoice, key: string, more: KeyboardEventInit = {}): boolean =>
  choice.press(new KeyboardEvent("keydown", { key, cancelable: true, ...more }));

afterEach(() => {
  end();
  catalog.prompts = [];
});

test("Enter takes what is offered, however the words came into the field", async () => {
  const { choice, types, text } = await typing("/");
  press(choice, "ArrowDown");
  press(choice, "ArrowDown");
  types("/be"); // by an input method or the clipboard: no key was pressed here
  expect(choice.chosen).toBe(0);
  expect(press(choice, "Enter")).toBe(true);
  expect(text()).toBe("beta words");
});

test("a key that is not for the list leaves it as it is", async () => {
  const { choice, text } = await typing("/");
  press(choice, "ArrowDown");
  expect(press(choice, "Shift", { shiftKey: true })).toBe(false);
  expect(press(choice, "Tab", { shiftKey: true })).toBe(false); // to what stands before the field
  expect([choice.chosen, text()]).toEqual([1, "/"]);
});
