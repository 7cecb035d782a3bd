/** The waterfall of a turn: what stands where, and what is said of it. */

import { describe, expect, it } from "vitest";

import type { TraceView } from "../src/api/generated";
import { en } from "../src/i18n/en";
import { zh } from "../src/i18n/zh";
import { rowsOf } from "../src/trace/rows";

const view = {
  now: 140,
  totals: { seconds: 40, first_token: 1, waited: 10, requests: 4, tools: 5 },
  trace: {
    turn: "turn_1",
    conversation: "conv_1",
    state: "running",
    started: 100,
    ended: null,
    steps: [
      {
        number: 1,
        started: 100,
        ended: 130,
        requests: [
          { attempt: 1, model: "m", started: 100, ended: 101, error: "busy", status: 503, wait: 2 },
          { attempt: 2, model: "m", started: 103, first: 104, ended: 105 },
        ],
        calls: [
          {
            id: "c1",
            tool: "delete",
            made: 105,
            state: "completed",
            ended: 120,
            because: { kind: "rule", text: "allow delete", origin: "dragoman.toml:7" },
            runs: [{ started: 115, ended: 120 }],
            waits: [{ question: "q1", kind: "approve", because: "rule", asked: 105, answered: 115, verdict: "allow", by: "ada" }],
          },
          { id: "c2", tool: "shell", made: 105, state: "rejected", ended: 106, runs: [], waits: [] },
        ],
      },
      { number: 2, started: 130, ended: null, requests: [{ attempt: 1, model: "m", started: 130 }], calls: [] },
    ],
  },
} as unknown as TraceView;

describe("a waterfall (O3)", () => {
  it("has a line for each step, attempt, call and question, in order", () => {
    expect(rowsOf(view, en).map(({ kind, label }) => `${kind} ${label}`)).toEqual([
      "step Step 1",
      "request Request, attempt 1",
      "request Request, attempt 2",
      "call delete",
      "wait Question",
      "call shell",
      "step Step 2",
      "request Request",
    ]);
  });

  it("places bars as shares of the turn, and lets what runs go on until now", () => {
    const rows = rowsOf(view, en);
    expect(rows[3]?.bars).toEqual([{ from: 0.375, to: 0.5, running: false }]);
    expect(rows[7]?.bars).toEqual([{ from: 0.75, to: 1, running: true }]);
    expect(rows[2]?.first).toBeCloseTo(0.1);
  });

  it("says why a call ran, who answered, and why it was asked again", () => {
    const rows = rowsOf(view, en);
    expect(rows[1]?.about).toEqual(["m", "HTTP 503: busy", "asked again after 2.0 s"]);
    expect(rows[3]?.about).toContain("ran by a rule: allow delete (dragoman.toml:7)");
    expect(rows[4]?.about).toContain("allowed by ada");
    expect([rows[1]?.state, rows[5]?.state, rows[7]?.state]).toEqual(["bad", "bad", "open"]);
  });

  it("is in Chinese, too", () => {
    expect(rowsOf(view, zh)[3]?.about).toContain("依规则运行: allow delete (dragoman.toml:7)");
  });
});
