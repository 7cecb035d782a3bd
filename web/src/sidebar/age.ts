/** Conversations in, sections by age out. */

import type { Summary } from "../api/types";

export type Age = "today" | "yesterday" | "week" | "earlier" | "found";
export interface Section {
  name: Age;
  items: Summary[];
}

const DAY = 86_400;

export function ageOf(seconds: number, now: Date): Age {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime() / 1000;
  if (seconds >= midnight) return "today";
  if (seconds >= midnight - DAY) return "yesterday";
  return seconds >= midnight - 7 * DAY ? "week" : "earlier";
}

/** What a search found stays in the order of its worth. */
export function byAge(items: Summary[], searched: boolean, now = new Date()): Section[] {
  const sections: Section[] = [];
  for (const item of items) {
    const name = searched ? "found" : ageOf(item.updated, now);
    const last = sections.at(-1);
    if (last?.name === name) last.items.push(item);
    else sections.push({ name, items: [item] });
  }
  return sections;
}
