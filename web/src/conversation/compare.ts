/** Versions of an answer side by side: what each one said, called, used and took. */

import type { FilePart, Message, Usage } from "../api/types";
import { added, saidIn, type Sentence } from "../i18n/format";
import { filesOf, wordsOf } from "./items";

export interface VersionSummary {
  model: string | null;
  words: string;
  /** Files that it generated, and files from its calls. */
  files: FilePart[];
  /** Each call and how it ended, in order. */
  calls: { tool: string; state: string }[];
  /** The error that ended it. */
  error: Sentence;
  usage: Usage | null;
  /** From its first message to its last timestamp. */
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
