/** Events in, messages out: the same cases that hold up the server's fold. */

import { describe, expect, it } from "vitest";

import type { CallPart, Message, Part } from "../src/api/types";
import { endingOf } from "../src/conversation/endings";
import { sourcesOf } from "../src/conversation/sources";
import { Draft, Fold, fold } from "../src/state/fold";
import { call, event, events, message, result, type Sketch, text, USAGE } from "./samples";

const EMPTY = message("msg_1", null, "assistant", { turn: "turn_1", model: "some/model" });

function drafted(sketches: Sketch[], from: Message = EMPTY): Message {
  const draft = new Draft(from);
  for (const each of events(...sketches)) draft.apply(each);
  return draft.message;
}

const kinds = (parts: Part[]): string[] => parts.map((part) => ("text" in part ? `${part.type}:${part.text}` : part.type));
const MADE: Sketch[] = [
  { type: "call.input.start", call: "c", tool: "a" },
  { type: "call.input.delta", call: "c", text: '{"a"' },
  { type: "call.input.end", call: "c", tool: "add", arguments: { a: 1 } },
];
const callAfter = (...more: Sketch[]): CallPart => drafted([...MADE, ...more]).parts[0] as CallPart;

describe("a reply", () => {
  it("is the same message however its text is cut (W1)", () => {
    for (const pieces of [["hello world"], ["hel", "lo wor", "ld"], [..."hello world"], ["", "hello world", ""]]) {
      const message = drafted([
        { type: "reasoning.start" },
        ...pieces.map((text): Sketch => ({ type: "reasoning.delta", text })),
        { type: "reasoning.end", signature: "signed", seconds: 0.5 },
        { type: "text.start" },
        ...pieces.map((text): Sketch => ({ type: "text.delta", text })),
        { type: "text.end" },
        { type: "message.end", message: "msg_1", finish: "stop", usage: USAGE },
      ]);
      expect(kinds(message.parts)).toEqual(["reasoning:hello world", "text:hello world"]);
      expect(message.parts[0]).toMatchObject({ signature: "signed", seconds: 0.5, model: "some/model" });
      expect(message).toMatchObject({ finish: "stop", usage: USAGE });
    }
  });

  it("has the files it made, and what is known of what it heard, also as its turn tells them (M3)", () => {
    const file = { type: "file", media_type: "image/png", blob: "a", url: null, name: "a.png", size: 1, made_by: null, signature: null } as const;
    const [reply] = fold(
      events(
        { type: "step.start", step: 1, attempt: 1, message: "m1", parent: null, model: "some/model" },
        { type: "file.partial", file, index: 0, offset: null },
        { type: "file.added", file },
        { type: "provider.data", data: { transcript: { language: "en" } } },
        { type: "message.end", message: "m1", finish: "stop", usage: USAGE },
      ),
    );
    expect(reply?.parts).toEqual([{ ...file, made_by: "some/model" }]);
    expect(reply?.metadata).toEqual({ transcript: { language: "en" } });
  });

  it("has the sources of a text, named while it comes or after it, and what the provider did itself (W1)", () => {
    const source = (url: string) => ({ url, title: null, quote: null, start: null, end: null, opaque: null });
    const parts = drafted([
      { type: "item.added", kind: "web_search_call", text: "rivers" },
      { type: "text.delta", text: "two" },
      { type: "text.cited", citations: [source("https://a.example")] },
      { type: "text.end", phase: "final_answer" },
      { type: "text.cited", citations: [source("https://b.example")] },
    ]).parts;
    expect(kinds(parts)).toEqual(["item:rivers", "text:two"]);
    expect(parts[1]).toMatchObject({ phase: "final_answer", citations: [{ url: "https://a.example" }, { url: "https://b.example" }] });
    expect(sourcesOf([source("javascript:alert(1)"), source("https://a.example"), source("https://a.example")])).toEqual([
      { url: null, title: "javascript:alert(1)" },
      { url: "https://a.example", title: "https://a.example" },
    ]);
  });

  it("keeps what was never ended (T6)", () => {
    expect(kinds(drafted([{ type: "text.start" }, { type: "text.delta", text: "half an ans" }]).parts)).toEqual(["text:half an ans"]);
    expect(kinds(drafted([{ type: "text.delta", text: "no start" }]).parts)).toEqual(["text:no start"]);
  });

  it("does not make an answer of reasoning that is begun twice (W4)", () => {
    const parts = drafted([
      { type: "reasoning.start" },
      { type: "reasoning.delta", text: "hm" },
      { type: "reasoning.start" },
      { type: "reasoning.delta", text: "so" },
    ]).parts;
    expect(kinds(parts)).toEqual(["reasoning:hm", "reasoning:so"]);
  });

  it("may have text and reasoning open at the same time (W4)", () => {
    const parts = drafted([
      { type: "text.start" },
      { type: "reasoning.start" },
      { type: "text.delta", text: "said " },
      { type: "reasoning.delta", text: "thought" },
      { type: "text.delta", text: "aloud" },
      { type: "reasoning.end" },
      { type: "text.end" },
    ]).parts;
    expect(kinds(parts)).toEqual(["text:said aloud", "reasoning:thought"]);
  });

  it("turns text into reasoning where it was a thought (W4)", () => {
    const parts = drafted([{ type: "text.start" }, { type: "text.delta", text: "hm" }, { type: "text.end", was_reasoning: true }]).parts;
    expect(kinds(parts)).toEqual(["reasoning:hm"]);
  });

  it("ends with the error it broke off with (T8)", () => {
    const parts = drafted([{ type: "text.delta", text: "half" }, { type: "error", message: "gone" }]).parts;
    expect(parts).toMatchObject([{ type: "text", text: "half" }, { type: "error", message: "gone" }]);
  });

  it("goes on from a snapshot in the middle of a part (E2)", () => {
    const half: Message = { ...EMPTY, parts: [text("half ")] };
    expect(kinds(drafted([{ type: "text.delta", text: "and half" }], half).parts)).toEqual(["text:half and half"]);
    expect(kinds(drafted([{ type: "text.start" }, { type: "text.delta", text: "new" }], half).parts)).toEqual(["text:half ", "text:new"]);
  });

  it("keeps the parts that did not change, so that they are not drawn again", () => {
    const draft = new Draft(EMPTY);
    draft.apply(event({ type: "text.delta", text: "one" }));
    draft.apply(event({ type: "text.end" }));
    const before = draft.message;
    draft.apply(event({ type: "reasoning.delta", text: "two" }));
    expect(draft.message).not.toBe(before);
    expect(draft.message.parts[0]).toBe(before.parts[0]);
    expect(draft.message).toBe(draft.message);
  });
});

describe("a call", () => {
  it("shows its arguments while they arrive, and then as they are (C4)", () => {
    expect(drafted(MADE.slice(0, 2)).parts[0]).toMatchObject({ tool: "a", partial: '{"a"', arguments: {} });
    expect(callAfter()).toMatchObject({ tool: "add", arguments: { a: 1 }, state: "pending", partial: undefined });
  });

  it.each([
    ["approve", "asked"],
    ["run", "asked"],
    ["loop", "asked"],
    ["interrupted", "asked"],
    ["review", "reviewing"],
    ["tool", "pending"],
  ] as const)("is moved by a question of kind %s to %s (C1)", (kind, state) => {
    const asked: Sketch = { type: "call.asked", call: "c", question: "ask_1", kind, tool: "add", arguments: { a: 1 }, text: "May it?" };
    expect(callAfter(asked).state).toBe(state);
  });

  it("makes calls of its own if it is a program, which are no parts of the reply (G2)", () => {
    const made: Sketch = { type: "call.made", call: "i", tool: "note", arguments: { n: 1 }, made_in: { call: "c", line: 2, number: 0 } };
    const end: Sketch = { type: "call.end", call: "i", tool: "note", arguments: { n: 1 }, state: "completed", result: result("1"), original: null, at: 2 };
    const reply = drafted([...MADE, made, end]);
    expect(reply.parts).toHaveLength(1);
    expect(reply.inner).toMatchObject([{ id: "i", tool: "note", state: "completed", made_in: { line: 2 } }]);
    expect(new Draft(reply).message.inner).toEqual(reply.inner);
  });

  it("runs and ends with what it ran with (C1, P3)", () => {
    const start: Sketch = { type: "call.start", call: "c", tool: "add", arguments: { a: 2 }, at: 1 };
    expect(callAfter(start)).toMatchObject({ state: "running", arguments: { a: 2 }, started: 1 });
    const end: Sketch = {
      type: "call.end",
      call: "c",
      tool: "Add",
      arguments: { a: 2 },
      state: "completed",
      result: result("2"),
      original: { a: 1 },
      at: 2,
    };
    const ended = { tool: "Add", state: "completed", original: { a: 1 }, result: { text: "2" }, started: 1, ended: 2 };
    expect(callAfter(start, { type: "call.progress", call: "c", value: 0.5 }, end)).toMatchObject(ended);
  });
});

describe("a turn", () => {
  const step = (number: number, attempt = 1): Sketch => ({
    type: "step.start",
    step: number,
    attempt,
    message: `msg_${number}`,
    parent: null,
    model: "some/model",
  });
  const over = (finish: string): Sketch => ({ type: "message.end", message: "", finish, usage: USAGE });

  it("folds into its messages in order; results find their call after the next message has begun (E1)", () => {
    const added: Message = { ...EMPTY, id: "msg_added", role: "user", parts: [text("also")] };
    const messages = fold(
      events(
        { type: "turn.start", conversation: "conv_1", message: "msg_0" },
        step(1),
        ...MADE,
        over("tool_calls"),
        { type: "message.added", message: added },
        step(2),
        { type: "text.delta", text: "so" },
        { type: "call.end", call: "c", tool: "add", arguments: {}, state: "failed", result: result("no") },
        over("stop"),
        { type: "turn.end", state: "completed", text: "so", usage: USAGE },
      ),
      "conv_1",
      "turn_1",
    );
    expect(messages.map((message) => message.id)).toEqual(["msg_1", "msg_added", "msg_2"]);
    expect(messages[0]?.parts[0]).toMatchObject({ state: "failed" });
    expect(messages[1]).toBe(added);
    expect(messages[2]).toMatchObject({ turn: "turn_1", parts: [{ text: "so" }] });
  });

  it("drops what came of a step that is asked again (S3)", () => {
    const messages = fold(
      events(step(1), { type: "text.delta", text: "to" }, ...MADE, step(1, 2), { type: "text.delta", text: "whole" }, over("stop"), step(2)),
    );
    expect(messages.map((message) => kinds(message.parts))).toEqual([["text:whole"]]);
  });

  it("does not mix up two turns that run side by side (T4)", () => {
    const folding = new Fold("conv_1", () => undefined);
    folding.apply(event({ ...step(1), turn: "turn_1" }));
    folding.apply(event({ ...step(2), turn: "turn_2" }));
    folding.apply(event({ type: "text.delta", text: "one", turn: "turn_1" }));
    folding.apply(event({ type: "text.delta", text: "two", turn: "turn_2" }));
    expect(kinds(folding.message("msg_1")?.parts ?? [])).toEqual(["text:one"]);
    expect(kinds(folding.message("msg_2")?.parts ?? [])).toEqual(["text:two"]);
  });

  it("finds calls and unfinished replies of a snapshot (E2)", () => {
        const first: Message = { ...EMPTY, id: "msg_1", parts: [call("c", { state: "asked" })], finish: "tool_calls" };
    const second: Message = { ...EMPTY, id: "msg_2", parts: [text("st")] };
    const folding = new Fold("conv_1", (id) => [first, second].find((message) => message.id === id));
    folding.know(first);
    folding.know(second);
    expect(folding.apply(event({ type: "call.start", call: "c", tool: "add", arguments: {}, turn: "turn_1" }))).toBe("msg_1");
    expect(folding.apply(event({ type: "text.delta", text: "ill", turn: "turn_1" }))).toBe("msg_2");
    expect(folding.message("msg_1")?.parts[0]).toMatchObject({ state: "running" });
    expect(kinds(folding.message("msg_2")?.parts ?? [])).toEqual(["text:still"]);
  });
});

describe("the end of a reply", () => {
  const ended = (finish: string, reason = ""): Message =>
    drafted([{ type: "message.end", message: "msg_1", finish, usage: USAGE, reason }]);

  it("is told with the provider's own word (T8)", () => {
    expect(endingOf(ended("safety", "SAFETY"), true)).toContain("(SAFETY)");
    expect(endingOf(ended("refusal"), true)).toBe("The model refused to answer.");
    expect(endingOf(ended("unknown", "banana"), true)).toContain("banana");
  });

  it("is not told where there is nothing to tell, or it went on (H10)", () => {
    for (const finish of ["stop", "tool_calls", "unknown", "cancelled"]) expect(endingOf(ended(finish), true)).toBeNull();
    expect(endingOf(ended("length"), false)).toBeNull();
    expect(endingOf(ended("length"), true)).not.toBeNull();
  });
});
