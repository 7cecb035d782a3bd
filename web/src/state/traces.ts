/** The traces of turns, each asked for once, and again where a call is not over in the one that is known. */

import * as api from "../api/calls";
import type { CallTrace } from "../api/generated";

const known = new Map<string, Promise<CallTrace[]>>();

async function load(turn: string): Promise<CallTrace[]> {
  const { trace } = await api.trace(turn);
  return (trace.steps ?? []).flatMap((step) => step.calls ?? []);
}

function asked(turn: string): Promise<CallTrace[]> {
  const loading = load(turn);
  known.set(turn, loading);
  loading.catch(() => known.delete(turn));
  return loading;
}

/** What the trace tells of a call that is over. */
export async function traceOf(turn: string, call: string): Promise<CallTrace | null> {
  const find = (calls: CallTrace[]): CallTrace | undefined => calls.find(({ id, ended }) => id === call && ended);
  const found = find(await (known.get(turn) ?? asked(turn))) ?? find(await asked(turn));
  return found ?? null;
}
