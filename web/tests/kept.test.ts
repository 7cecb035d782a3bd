/** What is kept in this browser: drafts, the files of drafts, settings; also where the browser does not take them. */

import { afterEach, describe, expect, it, vi } from "vitest";

import { Attachments } from "../src/composer/attachments.svelte";
import { drafts } from "../src/composer/drafts";
import { keep, readKept, settings } from "../src/state/settings.svelte";

const FULL = {
  getItem: () => null,
  removeItem: () => undefined,
  clear: () => undefined,
  setItem: () => {
    throw new DOMException("full", "QuotaExceededError");
  },
};

/** Whether the browser asks before the page is closed. */
const asks = (): boolean => !dispatchEvent(new Event("beforeunload", { cancelable: true }));

afterEach(() => {
  vi.unstubAllGlobals();
  drafts.clear();
  localStorage.clear();
});

describe("a draft", () => {
  it("is there after a look elsewhere also where the storage is full, and the page is not closed without a word", () => {
    drafts.set("conv_1", "before");
    vi.stubGlobal("sessionStorage", FULL);
    expect(asks()).toBe(false);
    drafts.set("conv_1", "a long text");
    expect(drafts.get("conv_1")).toBe("a long text");
    drafts.move("conv_1", "new");
    expect([drafts.get("conv_1"), drafts.get("new")]).toEqual([null, "a long text"]);
    expect(asks()).toBe(true);
    drafts.delete("new");
    expect(asks()).toBe(false);
  });

  it("that goes on elsewhere takes the files with it that are still on their way", async () => {
    const file = { type: "file", media_type: "text/plain", blob: "b", name: "a.txt", size: 1 };
    const { promise, resolve } = Promise.withResolvers<Response>();
    vi.stubGlobal("fetch", () => promise);
    const field = new Attachments("new");
    field.add([new File(["x"], "a.txt")]);
    drafts.move("new", "conv_1"); // the first message has made a conversation
    field.left = true;
    resolve(Response.json(file));
    await vi.waitFor(() => expect(drafts.files("conv_1")).toEqual([file]));
    expect(drafts.files("new")).toEqual([]);
    expect(drafts.fields.size).toBe(0);
  });
});

describe("a setting", () => {
  it("that the storage does not take holds until the page is closed", () => {
    vi.stubGlobal("localStorage", FULL);
    keep({ sendKey: "mod-enter" });
    keep({ diff: "split" });
    readKept(); // another tab has kept something
    expect([settings.sendKey, settings.diff]).toEqual(["mod-enter", "split"]);
    vi.unstubAllGlobals();
    keep({ sendKey: "enter" });
    expect(JSON.parse(localStorage.getItem("dragoman.settings") ?? "")).toMatchObject({ sendKey: "enter", diff: "split" });
    keep({ diff: "unified" });
  });
});
