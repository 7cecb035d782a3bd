/** The previewable content of a conversation, and its versions: files that calls wrote, blocks of answers, results. */

import type { CallPart, FilePart, Message, ToolResult } from "../api/types";
import { diffOf } from "../calls/look";
import { looksLikeMarkdown, tableOf, valueOf } from "../calls/shapes";
import { parseDiff, textOf } from "../diff/parse";
import { kindOfLanguage, kindOfName, type Kind } from "./languages";

/** `place` is the index among the blocks of a kind, from the first answer on. */
export type Source =
  | { from: "file"; path: string }
  | { from: "block"; kind: Kind; place: number }
  | { from: "result"; call: string }
  | { from: "attachment"; file: FilePart };

export interface Version {
  name: string;
  kind: Kind;
  text: string;
  file?: FilePart;
}

const TYPES: Record<string, Kind> = {
  "text/html": "html",
  "image/svg+xml": "svg",
  "text/markdown": "markdown",
  "text/csv": "csv",
  "application/json": "json",
  "application/pdf": "pdf",
};
const WRITERS = new Set(["write_file", "browser_write_file"]);
const FENCE = /^(`{3,})(\w+)[^\n]*\n([\s\S]*?)(?:^\1[ \t]*$|$(?![\s\S]))/gm;

export const kindOfFile = ({ media_type, name }: FilePart): Kind | null =>
  TYPES[media_type] ?? (media_type.startsWith("image/") ? "image" : kindOfName(name ?? ""));

/** A refused or failed change is not in the file. */
const counts = (call: CallPart): boolean => ["pending", "asked", "running", "completed"].includes(call.state);
const isOver = (call: CallPart): boolean => call.state === "completed";

/** The value of a text field of arguments that are still arriving. */
export function partialField(partial: string, name: string): string | null {
  const begun = new RegExp(`"${name}"\\s*:\\s*"`).exec(partial);
  if (!begun) return null;
  const rest = partial.slice(begun.index + begun[0].length);
  const [written = ""] = /^(?:[^"\\]|\\(?:u[\da-f]{4}|[^u]))*/i.exec(rest) ?? [];
  try {
    return JSON.parse(`"${written}"`) as string;
  } catch {
    return null;
  }
}

const field = (call: CallPart, name: string): string | null => {
  const value = call.arguments[name];
  return typeof value === "string" ? value : partialField(call.partial ?? "", name);
};

/** The file that a call writes or wrote, if it can be previewed. */
export function writtenBy(call: CallPart): string | null {
  const path = WRITERS.has(call.tool) && counts(call) ? field(call, "path") : isOver(call) ? parseDiff(diffOf(call.result)).find(({ name }) => kindOfName(name))?.name : null;
  return path && kindOfName(path) ? path : null;
}

/** Apply a diff to a text; null if the diff does not match. */
export function applyDiff(text: string, diff: string, name: string): string | null {
  const lines = text.split("\n");
  const made: string[] = [];
  let at = 0;
  for (const hunk of parseDiff(diff).filter((file) => file.name === name).flatMap(({ hunks }) => hunks)) {
    const first = hunk.rows.find((row) => row.old !== null)?.old ?? 1;
    made.push(...lines.slice(at, first - 1));
    at = first - 1;
    for (const row of hunk.rows) {
      if (row.old !== null && lines[at++] !== textOf(row)) return null;
      if (row.new !== null) made.push(textOf(row));
    }
  }
  return [...made, ...lines.slice(at)].join("\n");
}

const callsOf = (messages: Message[]): CallPart[] =>
  messages.flatMap((message) => [...message.parts, ...(message.inner ?? [])]).filter((part): part is CallPart => part.type === "call");

function versionsOfFile(messages: Message[], path: string): Version[] {
  const kind = kindOfName(path) ?? "json";
  const found: Version[] = [];
  for (const call of callsOf(messages)) {
    const last = found.at(-1)?.text;
    const diff = diffOf(call.result);
    const whole = WRITERS.has(call.tool) && counts(call) && field(call, "path") === path ? (field(call, "text") ?? field(call, "content")) : null;
    const text = whole ?? (isOver(call) && diff && last !== undefined ? applyDiff(last, diff, path) : null);
    if (text !== null && text !== last) found.push({ name: path, kind, text });
  }
  return found;
}

/** The blocks of a kind in all answers, including one that is still being written. */
export function blocksOf(messages: Message[], kind: Kind): string[] {
  return messages
    .filter(({ role }) => role === "assistant")
    .flatMap(({ parts }) => parts.flatMap((part) => (part.type === "text" ? [...part.text.matchAll(FENCE)] : [])))
    .filter(([, , language = ""]) => kindOfLanguage(language) === kind)
    .map(([, , , text = ""]) => text);
}

export function kindOfResult(result: ToolResult | null | undefined): Kind | null {
  if (!result) return null;
  const value = valueOf(result);
  if (value !== undefined) return "json";
  if (/^\s*<!doctype html|^\s*<html[\s>]/i.test(result.text)) return "html";
  if (/^\s*(?:<\?xml[^>]*>\s*)?<svg[\s>]/i.test(result.text)) return "svg";
  return looksLikeMarkdown(result.text) ? "markdown" : null;
}

/** The versions of a source, oldest first, and the index of the requested one. */
export function versionsOf(messages: Message[], source: Source): { versions: Version[]; at: number } {
  switch (source.from) {
    case "file": {
      const versions = versionsOfFile(messages, source.path);
      return { versions, at: versions.length - 1 };
    }
    case "block": {
      const versions = blocksOf(messages, source.kind).map((text, at) => ({ name: `${source.kind} ${at + 1}`, kind: source.kind, text }));
      return { versions, at: Math.min(source.place, versions.length - 1) };
    }
    case "result": {
      const call = callsOf(messages).find(({ id }) => id === source.call);
      const kind = kindOfResult(call?.result);
      return { versions: call?.result && kind ? [{ name: call.tool, kind, text: call.result.text || JSON.stringify(call.result.value, null, 2) }] : [], at: 0 };
    }
    case "attachment":
      return { versions: [{ name: source.file.name ?? source.file.media_type, kind: kindOfFile(source.file) ?? "image", text: "", file: source.file }], at: 0 };
  }
}

/** The rows of a CSV text. Quoted fields can contain commas, quotes and line breaks. */
export function csvRows(text: string): { columns: string[]; rows: Record<string, string>[] } | null {
  const fields = [...text.matchAll(/("(?:[^"]|"")*"?|[^,;\t\r\n]*)([,;\t]|\r?\n|$)/g)];
  const lines: string[][] = [[]];
  for (const [whole, raw = "", end = ""] of fields) {
    if (!whole) break;
    lines.at(-1)?.push(raw.startsWith('"') ? raw.slice(1).replace(/"$/, "").replaceAll('""', '"') : raw);
    if (/\n/.test(end)) lines.push([]);
  }
  const [head = [], ...rest] = lines.filter((line) => line.length > 1 || line[0]);
  if (!head.length) return null;
  const columns = head.map((name, at) => name || `${at + 1}`);
  return { columns, rows: rest.map((line) => Object.fromEntries(columns.map((name, at) => [name, line[at] ?? ""]))) };
}

export { tableOf };
