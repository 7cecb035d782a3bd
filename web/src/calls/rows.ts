/** Arguments as rows to read: short ones first, so that no long text stands before what decides. */

import type { JsonObject } from "../api/types";
import { pretty } from "./look";
import { visible } from "./visible";

export interface ValueRow {
  /** As it was sent. */
  key: string;
  name: string;
  text: string;
  /** A text, and not JSON. */
  words: boolean;
  long: boolean;
}

const SHORT = 160;

const isLong = (text: string): boolean => text.length > SHORT || text.includes("\n");

export function valueRows(values: JsonObject): ValueRow[] {
  const rows = Object.entries(values).map(([key, value]) => {
    const text = visible(typeof value === "string" ? value : compact(value));
    return { key, name: visible(key), text, words: typeof value === "string", long: isLong(text) };
  });
  return [...rows.filter((row) => !row.long), ...rows.filter((row) => row.long)];
}

/** On one line where it fits. */
function compact(value: unknown): string {
  const line = JSON.stringify(value);
  return line.length <= 80 ? line : pretty(value);
}
