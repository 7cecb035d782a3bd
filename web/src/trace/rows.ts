/** Convert a trace to the rows of a waterfall: the start and end of each bar, as fractions of the whole turn. */

import type { CallTrace, RequestTrace, TraceView, Wait } from "../api/generated";
import type { Kind } from "../api/types";
import { cost, count, duration, total, saidIn } from "../i18n/format";
import type { Words } from "../i18n/en";
import { isMe } from "../state/rights";
import { traceWords } from "./words";

export type RowKind = "step" | "request" | "call" | "wait" | "compaction";

export interface Row {
  key: string;
  kind: RowKind;
  label: string;
  /** The reason, the user, and how it ended. */
  about: string[];
  /** The full text. `about` omits what the previous row of the same kind says already. */
  whole: string;
  bars: { from: number; to: number; running: boolean }[];
  seconds: number;
  state: "good" | "bad" | "open";
  first: number | null;
  opened: string | null;
}

const KINDS = new Set<string>(["approve", "run", "loop", "interrupted", "review", "tool"]);

/** The intervals in which the turn only waited for users, as from and to. */
function waitsOf({ trace, now }: TraceView): [number, number][] {
  const calls = (trace.steps ?? []).flatMap(({ calls }) => calls ?? []);
  const waits = calls.flatMap(({ waits }) => (waits ?? []).map((wait): [number, number] => [wait.asked, wait.answered ?? trace.ended ?? now]));
  const busy = [
    ...calls.flatMap(({ runs }) => (runs ?? []).map((run): [number, number] => [run.started, run.ended ?? now])),
    ...(trace.steps ?? []).flatMap(({ requests }) => (requests ?? []).map((request): [number, number] => [request.started, request.ended ?? now])),
  ];
  const edges = [...new Set([...waits, ...busy].flat())].sort((one, other) => one - other);
  const within = ([from, to]: [number, number], spans: [number, number][]): boolean => spans.some((span) => span[0] <= from && to <= span[1]);
  const pieces = edges.slice(1).map((to, at): [number, number] => [edges[at] as number, to]);
  return pieces.filter((piece) => within(piece, waits) && !within(piece, busy));
}

/** `brief` describes a call in few words; `cut` omits the time spent waiting for users. */
export function rowsOf(view: TraceView, words: Words, brief: (call: string) => string = () => "", cut = false): Row[] {
  const { trace } = view;
  const until = Math.max(trace.ended ?? view.now, trace.started);
  const left = cut ? waitsOf(view) : [];
  const elapsed = (at: number): number => at - trace.started - left.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(to, at) - from), 0);
  const whole = Math.max(elapsed(until), 0.001);
  const share = (at: number): number => Math.min(1, Math.max(0, elapsed(at) / whole));
  const bar = (from: number, to: number | null | undefined): Row["bars"][number] => ({
    from: share(from),
    to: share(to ?? until),
    running: to === null || to === undefined,
  });
  const row = (key: string, kind: RowKind, label: string, from: number, to: number | null | undefined): Row => ({
    key,
    kind,
    label,
    about: [],
    whole: "",
    bars: [bar(from, to)],
    seconds: Math.max(0, (to ?? until) - from),
    state: to === null || to === undefined ? "open" : "good",
    first: null,
    opened: null,
  });
  const rows: Row[] = [];
  (trace.compactions ?? []).forEach((one, place) => {
    const made = row(`compaction ${place}`, "compaction", traceWords(words).traceCompaction, one.started, one.ended);
    rows.push({ ...made, about: [one.reason], state: one.error ? "bad" : made.state });
  });
  for (const step of trace.steps ?? []) {
    rows.push(row(`step ${step.number}`, "step", traceWords(words).traceStep(step.number), step.started, step.ended));
    const requests = step.requests ?? [];
    for (const request of requests) {
      const label = requests.length > 1 ? traceWords(words).traceAttempt(request.attempt) : traceWords(words).traceRequest;
      rows.push({
        ...row(`request ${step.number} ${request.attempt}`, "request", label, request.started, request.ended),
        about: aboutRequest(request, words),
        state: request.error ? "bad" : request.ended ? "good" : "open",
        first: request.first ? share(request.first) : null,
      });
    }
    for (const call of step.calls ?? []) {
      const runs = call.runs ?? [];
      const made = row(call.id, "call", [call.tool, brief(call.id)].filter(Boolean).join("  "), runs[0]?.started ?? call.made, call.ended);
      const seconds = runs.reduce((sum, run) => sum + Math.max(0, (run.ended ?? until) - run.started), 0);
      rows.push({
        ...made,
        about: aboutCall(call, words),
        bars: runs.length > 0 ? runs.map((run) => bar(run.started, run.ended)) : made.bars,
        seconds: runs.length > 0 ? seconds : 0,
        state: stateOf(call),
        opened: call.opened ?? null,
      });
      for (const wait of call.waits ?? []) {
        rows.push({
          ...row(wait.question, "wait", traceWords(words).traceAsked, wait.asked, wait.answered),
          about: aboutWait(wait, call.tool, words),
        });
      }
    }
  }
  return cut ? leanRows(rows.filter(({ kind }) => kind !== "wait")) : leanRows(rows);
}

/** Text that equals the previous row of the same kind is shown only once. */
function leanRows(rows: Row[]): Row[] {
  const before = new Map<RowKind, string[]>();
  return rows.map((row) => {
    const told = before.get(row.kind) ?? [];
    before.set(row.kind, row.about);
    return { ...row, whole: row.about.join(" · "), about: row.kind === "wait" ? row.about : row.about.filter((one) => !told.includes(one)) };
  });
}

function stateOf(call: CallTrace): Row["state"] {
  if (!call.ended) return "open";
  return call.state === "completed" ? "good" : "bad";
}

function aboutRequest(request: RequestTrace, words: Words): string[] {
  const about = [request.model];
  if (request.error) {
    about.push(request.status ? `HTTP ${request.status}: ${request.error}` : request.error);
    if (request.wait) about.push(traceWords(words).traceAgain(duration(request.wait)));
  } else if (request.first) {
    about.push(traceWords(words).traceFirst(duration(Math.max(0, request.first - request.started))));
  }
  const usage = request.usage;
  if (usage && total(usage)) about.push(`${words.tokens(count(total(usage)))} · ${cost(usage, words.costUnknown)}`);
  return about;
}

function aboutCall(call: CallTrace, words: Words): string[] {
  const states: Record<string, string> = words.states;
  const about = call.state === "completed" ? [] : [states[call.state ?? ""] ?? String(call.state)]; // the usual end
  const because = call.because;
  if (because) {
    const reasons: Record<string, string> = words.traceBecause;
    const kind = reasons[because.kind];
    const origin = because.origin ? ` (${words.server(saidIn(because, "origin"))})` : "";
    const text = words.server(saidIn(because, "text"));
    about.push(kind ? `${kind}: ${text}${origin}` : text);
  }
  if (call.limit) about.push(words.server(saidIn(call, "limit")));
  return about;
}

function aboutWait(wait: Wait, tool: string, words: Words): string[] {
  const about = KINDS.has(wait.kind) ? [words.asks[wait.kind as Kind](tool)] : [];
  const by = (wait.by && isMe(wait.by) ? traceWords(words).traceYou : wait.by) ?? traceWords(words).traceSomebody;
  if (!wait.verdict) about.push(wait.answered ? words.unanswered : traceWords(words).traceStillAsked);
  else about.push(traceWords(words).traceAnswered((traceWords(words).traceVerdicts as Record<string, string>)[wait.verdict] ?? wait.verdict, by));
  return about;
}
