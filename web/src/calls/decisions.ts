/** Describe a decision about a call: by which rule, grant or user, when, and for how long. */

import type { CallTrace, Wait } from "../api/generated";
import { moment, saidIn } from "../i18n/format";
import type { Words } from "../i18n/en";

const VERDICTS = ["allow", "reject", "stop", "release", "withhold", "reply"] as const;
type Verdict = (typeof VERDICTS)[number];

/** `me` is the name of the user who reads the text. */
export function decisionsOf(call: CallTrace, words: Words, me = "local"): string[] {
  const waits = (call.waits ?? []).map((wait) => inWords(wait, words, me)).filter((line) => line !== "");
  const { because } = call;
  const byRule = because && because.kind !== "answer" ? [reason(because, words)] : [];
  return [...byRule, ...waits, ...(call.limit ? [words.skippedBy(words.server(saidIn(call, "limit")))] : [])];
}

function reason(because: NonNullable<CallTrace["because"]>, words: Words): string {
  const kinds: Record<string, string> = words.traceBecause;
  const origin = because.origin ? ` (${words.server(saidIn(because, "origin"))})` : "";
  const kind = kinds[because.kind] ?? because.kind;
  return `${kind.charAt(0).toUpperCase()}${kind.slice(1)}: ${words.server(saidIn(because, "text"))}${origin}`;
}

function inWords(wait: Wait, words: Words, me: string): string {
  const at = wait.answered ? moment(wait.answered, words.code) : "";
  if (!wait.verdict) return wait.answered ? `${words.unanswered} · ${at}` : "";
  const verdict = VERDICTS.includes(wait.verdict as Verdict) ? words.decidedVerdicts[wait.verdict as Verdict] : wait.verdict;
  const scope = wait.scope && wait.scope !== "once" ? ` · ${words.scopes[wait.scope as "hour"] ?? wait.scope}` : "";
  return `${verdict} ${words.decidedBy(wait.by === me ? "" : (wait.by ?? ""))}${scope} · ${at}`;
}
