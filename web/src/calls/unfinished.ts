/** What a person is writing into a question: not gone without a word where somebody else, or another tab, answers first. */

import { t } from "../i18n/words.svelte";
import { tell } from "../state/toasts.svelte";
import { forget } from "./kept";

const writing = new Map<string, () => string | null>();

/** `typed`: what is written by now, if anything. Returns what ends it. */
export function isWritten(question: string, typed: () => string | null): () => void {
  writing.set(question, typed);
  return () => writing.delete(question);
}

/** The question is closed, and nothing was sent from here. */
export function rescue(question: string): void {
  const typed = writing.get(question)?.() ?? null;
  forget(question);
  offerCopy(typed);
}

/** What nobody will read, because another answer was first. */
export function offerCopy(typed: string | null): void {
  if (typed === null) return;
  const clipboard = import("../parts/clipboard"); // seldom wanted: it comes now
  tell(t().answeredMeanwhile, "note", { label: t().copy, run: () => void clipboard.then(({ copyText }) => copyText(typed)) }, 20);
}
