/** Versions of an answer beside each other: what each said, called, used and took. */

import type { FilePart, Message, Usage } from "../api/types";
import { added, saidIn, type Sentence } from "../i18n/format";
import { filesOf, wordsOf } from "./items";

export interface VersionSummary {
  model: string | null;
  words: string;
  /** What it made itself, and what its calls did. */
  files: FilePart[];
  /** Each call with how it ended, in order. */
  calls: { tool: string; state: string }[];
  /** What it broke off with. */
  error: Sentence;
  usage: Usage | null;
  /** From its first message to the last thing that is dated in it. */
  seconds: number;
}

export function versionOf(messages: Message[]): VersionSummary {
  const calls = messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "call" ? [part] : [])));
  const begun = messages.map(({ created }) => created);
  const times = [...begun, ...calls.flatMap(({ ended }) => ended ?? [])]; // copied calls ended long before
  const broke = messages.at(-1)?.parts.findLast((part) => part.type === "error");
  return {
    model: messages.findLast((message) => message.model)?.model ?? null,
    words: wordsOf(messages),
    files: [...filesOf(messages), ...calls.flatMap(({ result, state }) => (state === "withheld" ? [] : (result?.attachments ?? [])))],
    calls: calls.map(({ tool, state }) => ({ tool, state })),
    error: broke ? saidIn(broke, "message") : "",
    usage: messages.reduce<Usage | null>((sum, { usage }) => (usage ? (sum ? added(sum, usage) : usage) : sum), null),
    seconds: times.length ? Math.max(...times) - Math.min(...begun) : 0,
  };
}
