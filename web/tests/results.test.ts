/** Calls and what came of them: in rows, groups and shapes; and the items of an answer. */

import { flushSync, mount, unmount } from "svelte";
import { describe, expect, it } from "vitest";

import type { CallTrace } from "../src/api/generated";
import type { CallPart, ToolResult } from "../src/api/types";
import CallGroup from "../src/calls/CallGroup.svelte";
import { decisionsOf } from "../src/calls/decisions";
import { summaryOf } from "../src/calls/group";
import { openedBy } from "../src/calls/sub";
import { shapesOf, tableOf, valueOf } from "../src/calls/shapes";
import { untaken } from "../src/composer/modality";
import { choicesOf } from "../src/composer/modelChoices";
import { isKnown } from "../src/composer/models";
import { itemsOf, wordsOf } from "../src/conversation/items";
import { en } from "../src/i18n/en";
import { zh } from "../src/i18n/zh";
import { isComposing } from "../src/parts/keys";
import { ConversationView } from "../src/state/conversation.svelte";
import { call, message, result, summary, text } from "./samples";

describe("a result", () => {
  const given = (text: string, value?: ToolResult["value"]): ToolResult => ({ ...result(text), ...(value === undefined ? {} : { value }) });

  it("is a table where it is rows of one kind", () => {
    expect(shapesOf(given("", [{ a: 1, b: 2 }, { a: 3 }]))).toEqual(["table", "tree", "text"]);
    expect(shapesOf(given('[{"a": 1}]'))[0]).toBe("table");
    expect(tableOf([{ a: 1 }, 2])).toBeNull();
    expect(tableOf([])).toBeNull();
  });

  it("is a tree where it is other JSON, Markdown where it looks like it, else text", () => {
    expect(shapesOf(given('{"a": [1, 2]}'))).toEqual(["tree", "text"]);
    expect(shapesOf(given("# T\n\n**b** and\n\n| a | b |\n|---|---|\n| 1 | 2 |"))).toEqual(["markdown", "text"]);
    expect(shapesOf(given("# a comment\nx = 1"))).toEqual(["text"]);
    expect(valueOf(given("{not json"))).toBeUndefined();
  });
});

describe("many calls", () => {
  it("are counted by what became of them", () => {
    const made = (id: string, more: Partial<CallPart>): CallPart => ({ ...call(id), ...more });
    const calls = [
      made("a", { tool: "add", state: "completed", started: 10, ended: 11 }),
      made("b", { tool: "add", state: "failed", started: 11, ended: 14.2 }),
      made("c", { tool: "rm", state: "asked" }),
    ];
    expect(summaryOf(calls)).toEqual({ failed: 1, waiting: 1, running: 0, seconds: 4.199999999999999, tools: [["add", 2], ["rm", 1]] });
  });

  it("are shown in pieces", () => {
    const calls = Array.from({ length: 120 }, (_, n) => ({ call: call(`c${n}`, { state: n === 110 ? "interrupted" : "completed" }), turn: null }));
    const group = mount(CallGroup, { target: document.body, props: { view: new ConversationView("conv_1"), calls } });
    const press = (which: string): void => flushSync(() => document.querySelector<HTMLElement>(which)?.click());
    const shown = (): number => document.querySelectorAll("[data-call]").length;
    const more = "[data-testid=more-calls]";
    flushSync();
    expect(shown()).toBe(1); // what needs a look
    press("[aria-expanded]");
    expect(shown()).toBe(51);
    expect(document.querySelector(more)?.textContent?.trim()).toBe("+69 calls · Show more");
    press(more);
    press(more);
    expect([shown(), document.querySelector(more)]).toEqual([120, null]);
    void unmount(group);
  });
});

describe("an answer", () => {
  const half = message("a1", null, "assistant", { parts: [text("the first hal")], finish: "length" });
  const prompt = message("p1", "a1", "user", { author: "length", parts: [text("Your reply was cut off. Go on exactly where it stopped.")] });
  const rest = message("a2", "p1", "assistant", { parts: [text("f and the end.")], finish: "stop" });

  it("goes on in the middle of a word, without what it was asked to go on with (T8)", () => {
    expect(wordsOf([half, prompt, rest])).toBe("the first half and the end.");
    expect(itemsOf([half, prompt, rest], false).map(({ kind }) => kind)).toEqual(["part"]);
  });

  it("keeps what other plugins said", () => {
    const other = { ...prompt, author: "coach" };
    expect(wordsOf([half, other, rest])).toContain("Your reply was cut off");
  });

  it("has calls together that follow one another, also over several replies", () => {
    const one = message("a1", null, "assistant", { parts: [call("x")], finish: "tool_calls" });
    const two = message("a2", "a1", "assistant", { parts: [text(" \n"), call("y"), text("so")], finish: "stop" });
    expect(itemsOf([one, two], false).map((item) => (item.kind === "calls" ? item.calls.length : item.kind))).toEqual([2, "part"]);
  });
});

describe("what was decided", () => {
  it("names the rule, or who answered and for how long", () => {
    const trace = (more: object): CallTrace => ({ id: "c", tool: "t", made: 0, ...more }) as CallTrace;
    expect(decisionsOf(trace({ because: { kind: "rule", text: "allow add", origin: "dragoman.toml:4" } }), en)).toEqual(["Ran by a rule: allow add (dragoman.toml:4)"]);
    const origin = { code: "rule.built_in", text: "built in", values: {} };
    expect(decisionsOf(trace({ because: { kind: "rule", text: "allow basics.*", origin: "built in", said: { origin } } }), zh)).toEqual(["依规则运行: allow basics.* (内置)"]);
    const wait = { question: "q", kind: "approve", because: null, asked: 1, answered: 2, verdict: "allow", by: null, scope: "hour" };
    expect(decisionsOf(trace({ because: { kind: "answer", text: "" }, waits: [wait] }), en)[0]).toMatch(/^Allowed by you · for an hour · /);
    expect(decisionsOf(trace({ waits: [{ ...wait, by: "ada", scope: "once" }] }), en)[0]).toMatch(/^Allowed by ada · /);
  });
});

describe("a model", () => {
  const model = (name: string, more: object = {}) => ({ name, title: name.split("/")[1] ?? name, provider: "P", modalities: ["text"], ready: true, missing: null, note: null, context: null, tools: null, price: null, type: "chat" as const, unit_prices: {}, ...more });
  const models = [model("p/alpha"), model("p/beta", { ready: false, missing: "no key" })];
  const providers = [{ name: "p", title: "P", ready: true, missing: null, local: false, custom: false }, { name: "q", title: "Q", ready: false, missing: "no key", local: false, custom: false }];

  it("is found by words, or named", () => {
    expect(choicesOf("alp", models, providers, null).map(({ name }) => name)).toEqual(["p/alpha"]);
    expect(choicesOf("beta", models, providers, null)).toMatchObject([{ name: "p/beta", missing: "no key" }]);
    expect(choicesOf("p/gamma", models, providers, null)).toMatchObject([{ name: "p/gamma", typed: true, missing: null }]);
    expect(choicesOf("q/any", models, providers, null)).toMatchObject([{ typed: true, missing: "no key" }]);
    expect(choicesOf("x/any", models, providers, null)).toEqual([]);
    expect(choicesOf("", models, providers, "p/alpha").map(({ name, chosen }) => [name, chosen])).toEqual([[null, false], ["p/alpha", true]]);
  });

  it("stands in its group: recent ones, yours and those of this machine come before others, media after them", () => {
    const all = ["p/one", "p/two", "here/three", "mine/four"].map((name) => model(name));
    const some = [...providers, ...["here", "mine"].map((name) => ({ name, title: name, ready: true, missing: null, local: true, custom: name === "mine" }))];
    const draws = model("mine/draws", { type: "image-gen" as const });
    const found = choicesOf("", [draws, ...all], some, null, ["p/two"]).map(({ name, group }) => [group, name]);
    expect(found).toEqual([["usual", null], ["recent", "p/two"], ["custom", "mine/four"], ["running", "here/three"], ["others", "p/one"], ["media", "mine/draws"]]);
  });

  it("is kept from an earlier day only where it can still be meant", () => {
    expect([isKnown("p/whatever", models, providers), isKnown("q/any", models, providers), isKnown("x/any", models, providers)]).toEqual([true, false, false]);
  });

  it("is told of before it gets what it does not take", () => {
    const picture = [{ type: "image/png" }, { type: "text/plain" }];
    expect(untaken(picture, { modalities: ["text"] })).toEqual(["image"]);
    expect(untaken(picture, { modalities: ["text", "image"] })).toEqual([]);
    expect(untaken(picture, { modalities: [] })).toEqual([]);
  });
});

describe("a key", () => {
  it("belongs to an input method also where only its code says so", () => {
    expect(isComposing({ isComposing: false, keyCode: 229 } as KeyboardEvent)).toBe(true);
    expect(isComposing({ isComposing: false, keyCode: 13 } as KeyboardEvent)).toBe(false);
  });
});

describe("what a call opened", () => {
  const child = (id: string, opener: string): ReturnType<typeof summary> => ({ ...summary(null), id, parent: { conversation: "conv_1", call: opener } });
  const made = call("call_1", { tool: "ask_agents" });
  const known = [child("conv_3", "call_1"), child("conv_9", "call_2")];

  it("is every conversation of the agents that were asked, once", () => {
    expect(openedBy(made, { conversation: "conv_2" }, known)).toEqual(["conv_3", "conv_2"]);
    const over = { ...made, result: { ...result("all"), metadata: { agents: [{ conversation: "conv_2" }, { conversation: "conv_3" }] } } };
    expect(openedBy(over, undefined, known)).toEqual(["conv_2", "conv_3"]);
    const task = { ...made, result: { ...result("done"), metadata: { conversation: "conv_4" } } };
    expect(openedBy(task, { conversation: "conv_4" }, [])).toEqual(["conv_4"]);
  });
});
