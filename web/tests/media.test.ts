/** Pictures and sound: what they are called, how they look, and what is missing before they are asked for. */

import { describe, expect, it } from "vitest";

import type { Model } from "../src/api/types";
import { itemsOf } from "../src/conversation/items";
import { used } from "../src/conversation/used";
import { media as en } from "../src/i18n/en/media";
import { media as zh } from "../src/i18n/zh/media";
import { altOf, changesPictures, clock, isMask, maskName } from "../src/media/files";
import { lackOf, offersFor } from "../src/media/check";
import { WavReader } from "../src/media/samples";
import { sentences, spoken } from "../src/media/spoken";
import { wavOf } from "../src/media/wav";
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
    expect(used({ ...USAGE, images: 2 })).toBe("2 tokens · 2 images");
    expect(used({ ...USAGE, input: 0, output: 0, seconds: 90 })).toBe("1 min 30 s of audio");
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

describe("before it is sent (M2)", () => {
  const model = (name: string, type: Model["type"], modalities: string[], ready = true): Model =>
    ({ name, title: name, provider: "", type, modalities, ready, context: null, tools: null, note: null, missing: null, price: null, unit_prices: {} }) as Model;
  const [CHAT, SEES, DRAWS, CHANGES, HEARS, SPEAKS] = [
    model("chat", "chat", ["text"]),
    model("sees", "chat", ["text", "image"]),
    model("draws", "image-gen", ["text"]),
    model("changes", "image-edit", []),
    model("hears", "audio-stt", []),
    model("speaks", "audio-tts", []),
  ];
  const ALL = [CHAT, SEES, DRAWS, CHANGES, HEARS, SPEAKS, model("later", "chat", ["text", "image"], false)];
  const NOTHING = { picture: false, sound: false };
  const picture = { name: "a.png", type: "image/png" };
  const mask = { name: "a-mask.png", type: "image/png" };
  const sound = { name: "a.wav", type: "audio/wav" };
  const lack = (who: Model, text: string, files: { name: string; type: string }[] = [], earlier = NOTHING) => lackOf({ text, files }, who, earlier)?.code ?? null;
  const offers = (who: Model, text: string, files: { name: string; type: string }[] = [], records = true) => {
    const message = { text, files };
    const found = lackOf(message, who, NOTHING);
    return found ? offersFor(found, message, who, ALL, records).map((offer) => (offer.kind === "model" ? offer.model.name : offer.kind)) : [];
  };

  it("nothing is missing in a message that nobody has begun", () => {
    expect(ALL.map((who) => lack(who, " "))).toEqual(ALL.map(() => null));
  });

  it("a picture is not for a model that reads text only; one that sees is offered, if it is ready", () => {
    expect(lack(CHAT, "what is it?", [picture])).toBe("untaken");
    expect(lack(SEES, "what is it?", [picture])).toBeNull();
    expect(lackOf({ text: "", files: [picture] }, model("?", "chat", []), NOTHING, ["image"])).toBeNull(); // sent anyway before
    expect(offers(model("?", "chat", []), "what is it?", [picture])).toEqual(["anyway", "sees", "changes"]);
    expect(offers(CHAT, "what is it?", [picture])).toEqual(["sees", "changes"]);
    expect(offers(SPEAKS, "hear", [sound])).toEqual(["hears"]);
    expect(offers(CHAT, "see", [{ name: "a.mp4", type: "video/mp4" }])).toEqual(["choose"]);
  });

  it("a change wants a picture that is no mask, or an earlier one, and words", () => {
    expect(lack(CHANGES, "red")).toBe("needsPicture");
    expect(lack(CHANGES, "red", [], { ...NOTHING, picture: true })).toBeNull();
    expect(lack(CHANGES, "", [picture])).toBe("needsWords");
    expect(lack(CHANGES, "red", [picture, mask])).toBeNull();
    expect(offers(CHANGES, "red")).toEqual(["attach", "draws"]);
  });

  it("a transcript wants one sound", () => {
    expect(lack(HEARS, "hello")).toBe("needsSound");
    expect(lack(HEARS, "", [sound])).toBeNull();
    expect(lack(HEARS, "", [sound, sound])).toBe("oneSound");
    expect(offers(HEARS, "hello")).toEqual(["attach", "record", "chat"]);
    expect(offers(HEARS, "hello", [], false)).toEqual(["attach", "chat"]);
  });

  it("speech wants words, or a file of them", () => {
    expect(lack(SPEAKS, "", [{ name: "a.txt", type: "text/plain" }])).toBeNull();
    expect(lack(DRAWS, "", [picture])).toBe("untaken");
  });
});

describe("what is spoken", () => {
  it("has no marks, no code and no addresses", () => {
    const text = "# Title\n\nSome **bold** `code`, a [link](https://a.example).\n\n```js\nrun();\n```\n\n| a | b |\n|---|---|\n\n- one";
    expect(spoken(text)).toBe("Title\nSome bold code , a link.\na b\none");
  });

  it("comes in short pieces, and all of it", () => {
    expect(sentences("One. Two!\n三。四")).toEqual(["One.", "Two!", "三。", "四"]);
    expect(sentences("x".repeat(500)).join("")).toBe("x".repeat(500));
  });
});

describe("a sound that is still coming", () => {
  const whole = new Uint8Array(wavOf(Float32Array.from([0, 0.5, -0.5, 1]), 24_000));

  it("gives its samples, wherever it is cut", () => {
    for (const size of [1, 3, 7, 45, 100]) {
      const reader = new WavReader();
      const samples: number[] = [];
      for (let from = 0; from < whole.length; from += size) samples.push(...(reader.push(whole.slice(from, from + size))[0] ?? []));
      expect(samples.map((sample) => Math.round(sample * 100) / 100)).toEqual([0, 0.5, -0.5, 1]);
      expect(reader.form).toEqual({ channels: 1, rate: 24_000 });
    }
  });

  it("may not know its length, and is no other kind of file", () => {
    const endless = whole.slice();
    new DataView(endless.buffer).setUint32(40, 0xffffffff, true);
    expect(new WavReader().push(endless)[0]).toHaveLength(4);
    expect(() => new WavReader().push(new TextEncoder().encode("ID3 something else"))).toThrow("no WAV file");
    const floats = whole.slice();
    new DataView(floats.buffer).setUint16(20, 3, true);
    expect(() => new WavReader().push(floats)).toThrow("another kind");
  });
});

describe("a recording", () => {
  it("is WAV of one channel", () => {
    const data = new DataView(wavOf(Float32Array.from([0, 1, -2]), 16_000));
    expect(data.byteLength).toBe(50);
    expect([data.getUint32(24, true), data.getUint32(40, true), data.getInt16(46, true), data.getInt16(48, true)]).toEqual([16_000, 6, 32_767, -32_767]);
  });
});
