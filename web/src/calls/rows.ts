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

/** On one line where it fits; a list of plain values breaks where the page does. */
function compact(value: unknown): string {
  const line = JSON.stringify(value);
  if (line.length <= 80) return line;
  const plain = Array.isArray(value) && value.every((one) => one === null || typeof one !== "object");
  return plain ? `[${value.map((one) => JSON.stringify(one)).join(", ")}]` : pretty(value);
}
