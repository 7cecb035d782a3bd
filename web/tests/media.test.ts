/** Pictures and sound: what they are called, how they look, and what is missing before they are asked for. */

import { describe, expect, it } from "vitest";

import { itemsOf } from "../src/conversation/items";
import { used } from "../src/conversation/used";
import { media as en } from "../src/i18n/en/media";
import { media as zh } from "../src/i18n/zh/media";
import { altOf, changesPictures, clock, isMask, maskName } from "../src/media/files";
import { peaksOf } from "../src/media/wave";
import { message, text, USAGE } from "./samples";

const file = (name: string, media_type = "image/png") => ({ type: "file", media_type, blob: "a", url: null, name, size: 1, made_by: null, signature: null }) as const;

describe("files", () => {
  it("of one reply stand together, and words part them (M3)", () => {
    const reply = message("1", null, "assistant", { parts: [file("a"), file("b"), text("and"), file("c")], finish: "stop" });
    const items = itemsOf([reply], false);
    expect(items.map((item) => (item.kind === "files" ? item.files.map(({ name }) => name) : item.kind))).toEqual([["a", "b"], "part", ["c"]]);
  });

  it("are told by what was asked for, else by their name, and nothing in it is hidden (M5)", () => {
    expect(altOf(file("a.png"), " a red\nhat ")).toBe("a red hat");
    expect(altOf(file("a\u202eb.png"), "")).toBe("a\\u202eb.png");
    expect(altOf(file("a"), "x".repeat(1000)).length).toBeLessThan(310);
  });

  it("have a mask that the server knows by its name (M2)", () => {
    expect(maskName("cat.jpeg")).toBe("cat-mask.png");
    expect([isMask(maskName("")), isMask("cat.png"), isMask("mask.png")]).toEqual([true, false, true]);
  });

  it.each([
    [0, "0:00"],
    [65.9, "1:05"],
    [3661, "1:01:01"],
    [Infinity, "0:00"],
  ])("%d seconds are %s", (seconds, words) => {
    expect(clock(seconds)).toBe(words);
  });

  it("look as loud as they are", () => {
    expect(peaksOf(Float32Array.from([0, 0.5, 0, -0.25]), 2)).toEqual([1, 0.5]);
    expect(peaksOf(new Float32Array(0))).toEqual([]);
    expect(peaksOf(new Float32Array(10_000), 4)).toEqual([0, 0, 0, 0]);
  });
});

describe("models", () => {
  it("that change pictures are those that say so (M1)", () => {
    const model = (type: "chat" | "image-gen" | "image-edit", ...modalities: string[]) => changesPictures({ type, modalities });
    expect([model("image-edit"), model("image-gen", "text", "image"), model("image-gen", "text"), model("chat", "image")]).toEqual([true, true, false, false]);
  });
});

describe("usage", () => {
  it("is in the measures that are paid (T11)", () => {
    expect(used({ ...USAGE, images: 2 })).toBe("2 tokens · 2 pictures");
    expect(used({ ...USAGE, input: 0, output: 0, seconds: 90 })).toBe("1 min 30 s of sound");
    expect(used({ ...USAGE, input: 0, output: 0, characters: 1200 })).toBe("1.2k characters spoken");
  });
});

describe("the words", () => {
  it("are Chinese throughout", () => {
    const leaves = (value: unknown): unknown[] => (typeof value === "object" && value !== null ? Object.values(value).flatMap(leaves) : [value]);
    const said = leaves(zh).map((value) => (typeof value === "function" ? String((value as (...all: unknown[]) => unknown)("1", "2")) : String(value)));
    expect(said.filter((words) => !/[\u3400-\u9fff]/.test(words))).toEqual([]);
    expect(Object.keys(zh.optionNames)).toEqual(Object.keys(en.optionNames));
    expect(Object.keys(zh.needsWords)).toEqual(Object.keys(en.needsWords));
  });
});
