/** The traces of turns. Each is requested once, and again if a call is unfinished in the known one. */

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

/** The trace of a finished call. */
export async function traceOf(turn: string, call: string): Promise<CallTrace | null> {
  const find = (calls: CallTrace[]): CallTrace | undefined => calls.find(({ id, ended }) => id === call && ended);
  const found = find(await (known.get(turn) ?? asked(turn))) ?? find(await asked(turn));
  return found ?? null;
}
