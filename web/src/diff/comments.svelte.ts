/** Comments on lines of a review, sent to the model together. */

import { SvelteMap } from "svelte/reactivity";

import { textOf, type Row } from "./parse";

export class LineComments {
  /** By file and line of the new side, or of the old side for removed lines. */
  readonly texts = new SvelteMap<string, string>();
  open = $state<string | null>(null);
  readonly #lines = new Map<string, { file: string; line: number; quoted: string }>();

  key(file: string, row: Row): string {
    const key = `${file}\n${row.new === null ? "old" : "new"}\n${row.new ?? row.old}`;
    this.#lines.set(key, { file, line: row.new ?? row.old ?? 0, quoted: textOf(row).trim().slice(0, 200) });
    return key;
  }

  write(key: string, text: string): void {
    if (text.trim()) this.texts.set(key, text);
    else this.texts.delete(key);
  }

  /** The message for the model, in the order of the files and lines. */
  message(heading: string): string {
    const all = [...this.texts].flatMap(([key, text]) => {
      const line = this.#lines.get(key);
      return line ? [{ ...line, text: text.trim() }] : [];
    });
    all.sort((one, other) => (one.file < other.file ? -1 : one.file > other.file ? 1 : one.line - other.line));
    return [heading, ...all.map(({ file, line, quoted, text }) => `- ${file}, line ${line}: ${text}\n  > ${quoted}`)].join("\n\n");
  }
}
