/** Summarize many calls: how many failed, wait or run, how long they took, and which tools they used. */

import type { CallPart } from "../api/types";

export interface GroupSummary {
  failed: number;
  waiting: number;
  running: number;
  /** From the start of the first to the end of the last. */
  seconds: number;
  tools: [string, number][];
}

export function summaryOf(calls: CallPart[]): GroupSummary {
  const count = (...states: string[]): number => calls.filter(({ state }) => states.includes(state)).length;
  const started = calls.flatMap((call) => call.started ?? []);
  const ended = calls.flatMap((call) => call.ended ?? []);
  const tools = new Map<string, number>();
  for (const { tool } of calls) tools.set(tool, (tools.get(tool) ?? 0) + 1);
  return {
    failed: count("failed"),
    waiting: count("asked", "reviewing"),
    running: count("running"),
    seconds: started.length && ended.length ? Math.max(0, Math.max(...ended) - Math.min(...started)) : 0,
    tools: [...tools].sort(([, one], [, other]) => other - one),
  };
}
