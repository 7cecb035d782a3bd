/** Ask a model outside the conversation: dictation and reading aloud are not part of it. */

import * as api from "../api/calls";
import { get } from "../api/client";
import type { TurnInfo } from "../api/generated";
import type { JsonObject, Message } from "../api/types";
import { list } from "../state/list.svelte";

const EVERY = 250; // milliseconds

/** Return the answer, from a conversation that is deleted after it is read. */
export async function askAside<T>(model: string, parts: api.Said, options: JsonObject, read: (answer: Message) => Promise<T> | T, signal: AbortSignal, begun: (turn: string) => void = () => {}): Promise<T> {
  const made = await api.create({ model });
  list.hidden.set(made.id, true);
  try {
    const { turn } = await api.send(made.id, parts, { options });
    begun(turn);
    while ((await get<TurnInfo>(`/api/turns/${encodeURIComponent(turn)}`, signal)).live) await pause(signal);
    const { messages } = await api.tree(made.id);
    const answer = messages.findLast(({ role }) => role === "assistant");
    const error = answer?.parts.find((part) => part.type === "error");
    if (!answer || error) throw new Error(error?.type === "error" ? error.message : "there is no answer");
    return await read(answer);
  } finally {
    void api.drop(made.id).then(
      () => list.drop(made.id),
      () => {}, // it stays in the list, and the user can delete it there
    );
  }
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, EVERY);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason as Error)), { once: true });
  });
}
