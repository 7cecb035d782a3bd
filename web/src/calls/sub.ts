/** The conversations that a call opened: one for a task, several where several agents were asked. */

import type { CallPart, Json, Summary } from "../api/types";
import { isObject } from "./schema";

const idIn = (value: Json | undefined): string[] => (isObject(value) && typeof value.conversation === "string" ? [value.conversation] : []);

export function openedBy(call: CallPart, told: Json | undefined, known: Iterable<Summary>): string[] {
  const { agents } = call.result?.metadata ?? {};
  const asked = Array.isArray(agents) ? agents.flatMap(idIn) : [];
  const children = [...known].filter((item) => item.parent?.call === call.id).sort((a, b) => a.created - b.created);
  return [...new Set([...asked, ...idIn(call.result?.metadata), ...children.map((item) => item.id), ...(asked.length ? [] : idIn(told))])];
}
