/** The text below a reply that did not end normally: the sentences of `messages/endings.py`. */

import type { Message } from "../api/types";
import { t } from "../i18n/words.svelte";

const INCOMPLETE = ["length", "context", "pause"]; // if the turn continued, the next reply shows it

function words(finish: string): string | null {
  switch (finish) {
    case "length":
      return t().cutShort;
    case "context":
      return t().contextFull;
    case "pause":
      return t().paused;
    case "refusal":
      return t().refused;
    case "filter":
      return t().filtered;
    case "safety":
      return t().safety;
    case "recitation":
      return t().recitation;
    case "malformed":
      return t().malformed;
    case "thoughts":
      return t().onlyThoughts;
    case "empty":
      return t().emptyAnswer;
    case "error":
      return t().brokenOff;
    case "unknown":
      return t().unknownEnd;
    default:
      return null;
  }
}

/** Null if there is nothing to show. `last`: whether no other reply of the same turn follows. */
export function endingOf(message: Message, last: boolean): string | null {
  const { finish, parts, metadata } = message;
  if (!finish || parts.some((part) => part.type === "error") || (INCOMPLETE.includes(finish) && !last)) return null;
  const reason = typeof metadata["reason"] === "string" ? metadata["reason"] : "";
  if (finish === "unknown" && !reason) return null;
  const text = words(finish);
  return text && reason ? `${text} (${reason})` : text;
}
