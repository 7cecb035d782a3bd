/** Numbers, times and texts as people read them. */

import { readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import type { Json, JsonObject, Said, Summary, Usage } from "../src/api/types";
import { inOrder } from "../src/calls/order";
import { inWords, offers, rulesInWords } from "../src/calls/questions";
import { valueRows } from "../src/calls/rows";
import { visible, visibleJson } from "../src/calls/visible";
import { added, cost, count, duration, size } from "../src/i18n/format";
import { cutText } from "../src/parts/cut";
import { byAge } from "../src/sidebar/age";
import { tasksOf } from "../src/conversation/todo";
import type { Sentence } from "../src/i18n/format";
import { zh } from "../src/i18n/zh";
import sentences from "../src/i18n/zh/sentences.json";
import { zh as settingsZh } from "../src/dialogs/words";
import { zh as setupZh } from "../src/setup/words";
import { zh as traceZh } from "../src/trace/words";
import { call, message, question, result } from "./samples";

const english = (sentence: Sentence): string => (typeof sentence === "string" ? sentence : sentence.text);
const usage = (cost: number | null, input = 10): Usage => ({ input, output: 0, cached: 0, cache_written: 0, reasoning: 0, cost, images: 0, seconds: 0, characters: 0 });

const said = (code: string, text: string, values: { [name: string]: Json | Sentence } = {}): Said => ({ code, text, values: values as JsonObject });

describe("figures", () => {
  it.each([
    [0.04, "40 ms"],
    [2.34, "2.3 s"],
    [42, "42 s"],
    [75, "1 min 15 s"],
    [7500, "2 h 5 min"],
  ])("%d seconds are %s", (seconds, words) => {
    expect(duration(seconds)).toBe(words);
  });

  it("sizes and counts are short", () => {
    expect([size(999), size(1500), size(50_000_000), count(999), count(1234), count(2_500_000)]).toEqual(["999 B", "1.5 kB", "50 MB", "999", "1.2k", "2.5M"]);
  });

  it("an unknown price is not taken for free (T11)", () => {
    expect(cost(usage(null), "unknown")).toBe("unknown");
    expect(cost(usage(0), "unknown")).toBe("$0");
    expect(added(usage(1), usage(null)).cost).toBeNull();
    expect(added(usage(1), usage(null, 0)).cost).toBe(1);
    expect(added(usage(1), usage(2)).cost).toBe(3);
  });
});

describe("what is approved is what is read (P14)", () => {
  const table = JSON.parse(readFileSync("../tests/visible_text.json", "utf8")) as [string, string][];
  it.each(table)("writes %j as the terminal does", (text, written) => {
    expect(visible(text)).toBe(written);
  });

  it("stays JSON of the same value where it is edited", () => {
    const value = { "a\u202e": "b\u200b\u{e0041}\n", c: [1] };
    expect(visibleJson(value)).not.toMatch(/[\u202e\u200b]/);
    expect(JSON.parse(visibleJson(value))).toEqual(value);
  });

  it("shows short arguments before long ones, wherever they stand (P3)", () => {
    const rows = valueRows({ to: "a", body: "one\ntwo", cc: ["eve@evil.example"], priority: 1 });
    expect(rows.map(({ name }) => name)).toEqual(["to", "cc", "priority", "body"]);
    expect(rows[1]?.text).toBe('["eve@evil.example"]');
  });

  it("tells how much of a long text is hidden", () => {
    const text = Array.from({ length: 4000 }, (_, n) => `line ${n}`).join("\n");
    expect(cutText(text, 10_000, 16)).toMatchObject({ lines: 3984, whole: false });
    expect(cutText("short", 10, 16)).toEqual({ text: "short", lines: 0, whole: true });
    expect(cutText("x".repeat(100), 10, 16)).toMatchObject({ text: "x".repeat(10), lines: 0, whole: false });
    expect(cutText("a\n".repeat(17), 100, 16).whole).toBe(true);
    expect(cutText("a\n".repeat(100), 50, Infinity)).toMatchObject({ text: "a\n".repeat(25), whole: false });
  });
});

describe("a question", () => {
  const rule = { permission: "notes.write", pattern: "a", action: "allow" as const, origin: "" };
  const asked = (text: Sentence, rules = [rule], values: JsonObject = { text: "a" }): string =>
    inWords(question("ask_1", "c", { tool: "note", text: english(text), rules, arguments: values, said: typeof text === "string" ? null : { text } }));
  const usual = said("question.approve", "May note run with these arguments?", { tool: "note" });
  const always = (asked: Sentence): Sentence => said("question.always", `${english(asked)} (always would mean: x)`, { asked, rules: "x" });

  it("is in our words where the server has only its usual ones (P9)", () => {
    expect(asked(always(usual))).toBe("May note run with these arguments?");
    const remark = "It is on another machine.";
    expect(asked(said("together", `${usual.text} ${remark}`, { all: [usual, remark] }), [])).toBe(`May note run with these arguments? ${remark}`);
    expect(asked(usual, [], {})).toBe("May note run?");
  });

  it("is in the words of who asks, and hides nothing of them (P9)", () => {
    expect(asked("This is PRODUCTION. Really?", [])).toBe("This is PRODUCTION. Really?");
    expect(asked(always("fetch_url has come to b\u200b.example. May it go on?"))).toBe("fetch_url has come to b\\u200b.example. May it go on?");
    expect(asked("May note run with these arguments? Yes! (always would mean: x)")).toContain("Yes! (always");
  });

  it("offers its own rules together, or a wider one (P11)", () => {
    const all = { ...rule, pattern: "*" };
    const two = question("ask_1", "c", { rules: [rule, { ...rule, pattern: "b" }], wider: [all] });
    expect(offers(two).map(rulesInWords)).toEqual(["notes.write for “a”; notes.write for “b”", "notes.write for everything"]);
    expect(offers(question("ask_1", "c", { rules: [], wider: [all] }))).toEqual([]);
  });
});

describe("the list", () => {
  const item = (id: string, updated: number): Summary => ({ id, updated }) as Summary;
  const now = new Date(2026, 5, 15, 12);
  const at = (days: number): number => now.getTime() / 1000 - days * 86_400;

  it("stands in sections by age", () => {
    const sections = byAge([item("a", at(0)), item("b", at(1)), item("c", at(3)), item("d", at(40))], false, now);
    expect(sections.map(({ name }) => name)).toEqual(["today", "yesterday", "week", "earlier"]);
  });

  it("keeps the order of what a search found", () => {
    const sections = byAge([item("d", at(40)), item("a", at(0))], true, now);
    expect(sections.map(({ items }) => items.map(({ id }) => id))).toEqual([["d", "a"]]);
  });
});

describe("Chinese", () => {
  const leaves = (value: unknown, path = ""): [string, unknown][] =>
    typeof value === "object" && value !== null
      ? Object.entries(value).flatMap(([key, inner]) => leaves(inner, `${path}.${key}`))
      : [[path, value]];
  const SAME = /^\.(?:code|languages|sendKeys|asJson|asMarkdown|examples\.\d+\.0|inboxKeys\.\d+\.0|version_|moreText|server|tool$|protocols|boxExamples|badValue|ruledFor|traceAnswered)/;
  const texts = (value: unknown): string => (typeof value === "function" ? String((value as (...all: unknown[]) => unknown)("1", "2", "3", "4")) : String(value));

  it("is Chinese throughout", () => {
    const all = [zh, settingsZh, setupZh, traceZh].flatMap((words) => leaves(words));
    const english = all.filter(([path, value]) => !SAME.test(path) && !/[\u3400-\u9fff]/.test(texts(value)));
    expect(english).toEqual([]);
  });

  it("says every sentence of the server with its values in it, and in Chinese", () => {
    for (const [code, template] of Object.entries(sentences)) {
      const values = Object.fromEntries([...template.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => [name, `‹${name}›`]));
      const told = zh.server(said(code, "English", values));
      expect(told, code).not.toMatch(/[{}]|English/);
      for (const value of Object.values(values)) expect(told, code).toContain(value);
      if (/[a-z]/i.test(template.replace(/\{\w+\}|HTTP|\.base_url/g, ""))) expect(told, code).toMatch(/[\u3400-\u9fff]/);
    }
  });

  it("says a sentence by its code, whatever its English is, and English where there is none", () => {
    expect(zh.server(said("limit.rounds", "reworded", { count: 10 }))).toBe("10 轮工具调用");
    expect(zh.server("10 rounds of tool calls")).toBe("10 rounds of tool calls");
    expect(zh.server(said("something.new", "something new"))).toBe("something new");
    expect(zh.server(said("limit.rounds", "said by another version", { rounds: 10 }))).toBe("said by another version");
    const names = said("either", "A_KEY or B_KEY", { one: "A_KEY", other: "B_KEY" });
    expect(zh.server(said("provider.no_key", "…", { provider: "Cohere", names, stored: "", ways: "" }))).toBe("没有 Cohere 的密钥：请设置环境变量 A_KEY 或 B_KEY。");
  });

  it("says a sentence in a sentence, with one full stop", () => {
    const missing = said("edits.old_missing", "…", { path: "a.py" });
    const one = said("edits.one_failed", "…", { place: 1, count: 2, why: missing });
    expect(zh.server(said("question.fails", "…", { why: one }))).toBe(
      "照现在的情况，它会失败：其中一处编辑不行：要替换的文字不在 a.py 中：必须完全一致，包括空格和换行；一处也没有改。",
    );
    expect(zh.server(said("question.fails", "…", { why: "something new" }))).toBe("照现在的情况，它会失败：something new。");
    const failed = said("provider.with_status", "…", { message: said("key.refused", "…", { host: "a.test" }), status: 401 });
    const hint = said("hint.check", "Check A_KEY", { name: "A_KEY" });
    expect(zh.server(said("provider.with_hint", "…", { message: failed, hint }))).toBe("a.test 不接受这个密钥（HTTP 401）。请检查 A_KEY。");
    expect(zh.server(said("provider.with_hint", "…", { message: "Bad key given", hint }))).toBe("Bad key given。请检查 A_KEY。");
  });

  it("has words for our tools", () => {
    expect(zh.tool("Tell the date, the weekday\n and the time of day.")).toBe("给出日期、星期和时间。");
    expect(zh.tool("Give a piece of work to another agent, which does it in a conversation of its own and answers once. It knows nothing of this one: say all it needs.\n- a: b")).toMatch(/一切。\n- a: b$/);
    expect(zh.tool("Tell the date, and all your secrets.")).toBe("Tell the date, and all your secrets.");
  });
});

describe("a list of tasks", () => {
  it("is the newest that the model gave", () => {
    const given = (state: string) => ({ ...call("c"), tool: "todo", result: { ...result(""), metadata: { items: [{ text: "a", state }] } } });
    const messages = [message("1", null, "assistant", { parts: [given("open")] }), message("2", "1", "assistant", { parts: [given("done")] })];
    expect(tasksOf(messages)).toEqual([{ text: "a", state: "done" }]);
    expect(tasksOf([message("1", null, "assistant", { parts: [call("x")] })])).toEqual([]);
  });
});

it("a list of plain values is written on one line, which breaks where the page does", () => {
  const numbers = Array.from({ length: 60 }, (_, place) => place);
  expect(valueRows({ numbers })[0]?.text).toBe(`[${numbers.join(", ")}]`);
  expect(valueRows({ rows: [{ a: "x".repeat(90) }] })[0]?.text).toContain("\n");
});

describe("several questions", () => {
  it("come as their calls stand in a reply, whichever was asked about first; replies by time", () => {
    const asked = (id: string, call: string, at: number) => question(id, call, { asked: at });
    const found = [asked("late", "call_b_0", 7), asked("second", "call_a_1", 5), asked("tenth", "call_a_10", 4), asked("first", "call_a_0", 6)];
    expect(inOrder(found).map(({ id }) => id)).toEqual(["first", "second", "tenth", "late"]);
  });
});
