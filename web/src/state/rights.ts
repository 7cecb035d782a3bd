/** Your rights in a conversation. Each right includes those before it. */

import type { Summary } from "../api/types";
import { catalog } from "./catalog.svelte";
import { list } from "./list.svelte";

export const READ = 1;
export const ANSWER = 2;
export const TAKE_PART = 3;
export const OWN = 4;
const RIGHTS: Partial<Record<string, number>> = { reads: READ, answers: ANSWER, takes_part: TAKE_PART, owns: OWN };

export const isMe = (user: string): boolean => user === catalog.me?.user;

/** A conversation that is not stored yet is yours. A snapshot omits the role, so the list supplies it. */
export function rightsIn(item: Summary | null | undefined): number {
  if (!item?.owner || isMe(item.owner)) return OWN;
  return RIGHTS[item.role ?? list.known.get(item.id)?.role ?? ""] ?? READ;
}
