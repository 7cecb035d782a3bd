/** Arguments as rows to read. Short ones come first, so that no long text precedes the values that matter most. */

import type { JsonObject } from "../api/types";
import { pretty } from "./look";
import { visible } from "./visible";

export interface ValueRow {
  /** The value as it was sent. */
  key: string;
  name: string;
  text: string;
  /** Whether the value is a string, and not JSON. */
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

/** On one line if it fits; a list of plain values breaks at the width of the page. */
function compact(value: unknown): string {
  const line = JSON.stringify(value);
  if (line.length <= 80) return line;
  const plain = Array.isArray(value) && value.every((one) => one === null || typeof one !== "object");
  return plain ? `[${value.map((one) => JSON.stringify(one)).join(", ")}]` : pretty(value);
}
