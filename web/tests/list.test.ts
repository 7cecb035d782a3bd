import { afterEach, expect, test, vi } from "vitest";

import type { Summary } from "../src/api/types";
import { list } from "../src/state/list.svelte";

const line = (title: string, snippet: string | null, found: string | null): Summary => ({ id: "conv_1", title, snippet, found }) as Summary;

afterEach(() => {
  vi.unstubAllGlobals();
  list.drop("conv_1");
  list.search = "";
});

test("news that come while a search is under way hide nothing of what it found", async () => {
  let answer = (_: Response): void => {};
  vi.stubGlobal("fetch", () => new Promise<Response>((resolve) => (answer = resolve)));
  list.put(line("old", "an apple", "msg_1"));
  list.search = "pear";
  const loaded = list.load();
  list.put(line("new", null, null));
  answer(Response.json({ items: [line("old", "a pear", "msg_2")], next: null, tags: [] }));
  await loaded;
  expect(list.shown).toMatchObject([line("new", "a pear", "msg_2")]);
});

test.each([
  ["that a snapshot left out is the list's", null, "takes_part"],
  ["that was told while the list was asked for stays", "answers", "answers"],
])("a role %s (V1)", async (_, told, role) => {
  let answer = (_: Response): void => {};
  vi.stubGlobal("fetch", () => new Promise<Response>((resolve) => (answer = resolve)));
  const item = (role: string | null): Summary => ({ ...line("shared", null, null), role });
  list.put(item("reads"));
  list.search = "shared";
  const loaded = list.load();
  list.put(item(told));
  answer(Response.json({ items: [item("takes_part")], next: null, tags: [] }));
  await loaded;
  expect(list.known.get("conv_1")?.role).toBe(role);
});
