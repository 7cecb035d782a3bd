/** Numbers, times and texts as people read them. */

import { describe, expect, it } from "vitest";

import type { Summary, Usage } from "../src/api/types";
import { inWords, offers, rulesInWords } from "../src/calls/questions";
import { visible } from "../src/calls/visible";
import { added, cost, count, duration, size } from "../src/i18n/format";
import { byAge } from "../src/sidebar/age";
import { question } from "./samples";

const usage = (cost: number | null, input = 10): Usage => ({ input, output: 0, cached: 0, cache_written: 0, reasoning: 0, cost });

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

describe("what is approved is what is read (P3)", () => {
  it("writes out characters that are not seen", () => {
    expect(visible("rm \u202etxt.exe\u200b")).toBe("rm \\u202etxt.exe\\u200b");
    expect(visible("line\n\ttab 文件 é")).toBe("line\n\ttab 文件 é");
  });
});

describe("a question", () => {
  const rule = { permission: "notes.write", pattern: "a", action: "allow" as const, origin: "" };
  const asked = (text: string, rules = [rule]): string => inWords(question("ask_1", "c", { tool: "note", text, rules }));

  it("is in our words where the server has only its usual ones (P9)", () => {
    expect(asked("May note run with these arguments? (always would mean: allow notes.write for 'a')")).toBe("May note run with these arguments?");
    expect(asked("May note run with these arguments? It is on another machine.", [])).toBe("May note run with these arguments? It is on another machine.");
  });

  it("is in the words of who asks, and hides nothing of them (P9)", () => {
    expect(asked("This is PRODUCTION. Really?", [])).toBe("This is PRODUCTION. Really?");
    expect(asked("fetch_url has come to b\u200b.example. May it go on? (always would mean: allow web for 'b')")).toBe(
      "fetch_url has come to b\\u200b.example. May it go on?",
    );
    expect(asked("Does (always would mean: x) stay where no rule is offered? (always would mean: x)", [])).toContain("offered? (always");
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
