/** A user's unsent input in an approval request: the user is notified if another user or tab answers first. */

import { t } from "../i18n/words.svelte";
import { tell } from "../state/toasts.svelte";
import { forget } from "./kept";

const writing = new Map<string, () => string | null>();

/** `typed`: the current input, if any. Returns a function that ends the tracking. */
export function isWritten(question: string, typed: () => string | null): () => void {
  writing.set(question, typed);
  return () => writing.delete(question);
}

/** The approval request is closed, and this tab sent nothing. */
export function rescue(question: string): void {
  const typed = writing.get(question)?.() ?? null;
  forget(question);
  offerCopy(typed);
}

/** Input that is lost because another answer was first. */
export function offerCopy(typed: string | null): void {
  if (typed === null) return;
  const clipboard = import("../parts/clipboard"); // rarely needed, so loaded on demand
  tell(t().answeredMeanwhile, "note", { label: t().copy, run: () => void clipboard.then(({ copyText }) => copyText(typed)) }, 20);
}
