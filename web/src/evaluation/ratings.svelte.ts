/** The user's ratings for the answers of a conversation. Requested once, when the first answer is shown. */

import { SvelteMap } from "svelte/reactivity";

import * as api from "../api/calls";
import type { RatingView } from "../api/generated";
import { attempt } from "../state/toasts.svelte";

const known = new SvelteMap<string, RatingView>();
const asked = new Set<string>();

export function ratingOf(conversation: string, turn: string): RatingView | undefined {
  if (!asked.has(conversation)) {
    asked.add(conversation);
    queueMicrotask(() => void load(conversation));
  }
  return known.get(turn);
}

async function load(conversation: string): Promise<void> {
  const found = await attempt(() => api.ratings(conversation));
  if (!found) asked.delete(conversation);
  for (const one of found ?? []) known.set(one.turn, one);
}

export async function rate(turn: string, value: RatingView["value"], note = ""): Promise<void> {
  const kept = await attempt(() => api.rate(turn, value, note));
  if (kept) known.set(turn, kept);
}

export async function removeRating(turn: string): Promise<void> {
  await attempt(async () => {
    await api.removeRating(turn);
    known.delete(turn);
  });
}
