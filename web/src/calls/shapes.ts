/** The views of a result: a table, a tree, Markdown, or plain text. */

import type { Json, JsonObject, ToolResult } from "../api/types";
import { isObject } from "./schema";

export type Shape = "table" | "tree" | "markdown" | "text";

const READ = 400_000; // maximum number of characters to inspect: a longer text is shown as text

/** The value of a result: the structured value, or its text parsed as JSON. */
export function valueOf({ value, text, blob }: ToolResult): Json | undefined {
  if (typeof value === "object" && value !== null) return value;
  if (blob || text.length > READ || !/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** Rows of the same kind: a list of objects whose fields are few and mostly shared. */
export function tableOf(value: Json | undefined): { columns: string[]; rows: JsonObject[] } | null {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isObject)) return null;
  const rows = value as JsonObject[];
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const filled = rows.reduce((sum, row) => sum + Object.keys(row).length, 0);
  return columns.length > 0 && columns.length <= 12 && filled >= (columns.length * rows.length) / 2 ? { columns, rows } : null;
}

const MARKS = [/^#{1,4} \S/m, /^\s*\|.+\|\s*\n\s*\|[\s:|-]+\|/m, /^```/m, /\*\*\S[^*\n]*\*\*/, /\[[^\]\n]+\]\(https?:/];

/** Require two signs of Markdown: a comment in a script begins with # as well. */
export const looksLikeMarkdown = (text: string): boolean =>
  text.length < READ && (MARKS.filter((mark) => mark.test(text)).length >= 2 || MARKS[1]!.test(text));

export function shapesOf(result: ToolResult): Shape[] {
  const value = valueOf(result);
  if (value !== undefined) return tableOf(value) ? ["table", "tree", "text"] : ["tree", "text"];
  return looksLikeMarkdown(result.text) ? ["markdown", "text"] : ["text"];
}

export const cellText = (value: Json | undefined): string =>
  value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
