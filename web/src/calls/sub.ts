/** A call in, the conversation it opened out, if it opened one. */

import type { CallPart, Json, Summary } from "../api/types";
import { isObject } from "./schema";

const idIn = (value: Json | undefined): string | null =>
  isObject(value) && typeof value.conversation === "string" ? value.conversation : null;

export function openedBy(call: CallPart, told: Json | undefined, known: Iterable<Summary>): string | null {
  const said = idIn(call.result?.metadata) ?? idIn(told);
  if (said !== null) return said;
  for (const item of known) if (item.parent?.call === call.id) return item.id;
  return null;
}
