/** Sections of the list: pinned conversations, then by age. */

import type { Summary } from "../api/types";

export type Age = "pinned" | "today" | "yesterday" | "week" | "earlier" | "found";
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

/** Search results stay in the order of their relevance. */
export function byAge(items: Summary[], searched: boolean, now = new Date()): Section[] {
  const sections: Section[] = [];
  const pinned = searched ? [] : items.filter((item) => item.pinned);
  if (pinned.length) sections.push({ name: "pinned", items: pinned });
  for (const item of items) {
    if (pinned.includes(item)) continue;
    const name = searched ? "found" : ageOf(item.updated, now);
    const last = sections.at(-1);
    if (last?.name === name) last.items.push(item);
    else sections.push({ name, items: [item] });
  }
  return sections;
}
