/** Footnotes: [^1] in the text, [^1]: at its end. Numbered in the order of their references. */

import type { TokenizerAndRendererExtension } from "marked";

import { inParagraph } from "./paragraph";

const DEFINITION = /^ {0,3}\[\^([^[\]\s]+)\]:[ \t]*(.*(?:\n(?:[ \t]{2,}\S.*|[ \t]*(?=\n[ \t]{2,}\S)))*)(?:\n+|$)/;
const REFERENCE = /^\[\^([^[\]\s]+)\]/;

export interface Footnotes {
  /** The number of each note, by name. */
  numbers: Map<string, number>;
  /** Their texts, in this order. */
  texts: string[];
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

export const NONE: Footnotes = { numbers: new Map(), texts: [] };

const withoutCode = (text: string): string => text.replace(/^ {0,3}(```|~~~)[^]*?(?:^ {0,3}\1|$(?![^]))/gm, "").replace(/`[^`\n]*`/g, "");

export function footnotesOf(text: string): Footnotes {
  if (!text.includes("[^")) return NONE;
  const plain = withoutCode(text);
  const defined = new Map<string, string>();
  for (const [, name, words] of plain.matchAll(new RegExp(DEFINITION.source, "gm"))) {
    if (name && !defined.has(name)) defined.set(name, (words ?? "").replace(/\n[ \t]+/g, "\n").trim());
  }
  const numbers = new Map<string, number>();
  for (const [, name] of plain.matchAll(/\[\^([^[\]\s]+)\](?!:)/g)) {
    if (name && defined.has(name) && !numbers.has(name)) numbers.set(name, numbers.size + 1);
  }
  return { numbers, texts: [...numbers.keys()].map((name) => defined.get(name) ?? "") };
}

let current = NONE;

/** Parsing is synchronous, so a module variable can pass the notes to it. */
export function withFootnotes<T>(notes: Footnotes, work: () => T): T {
  current = notes;
  try {
    return work();
  } finally {
    current = NONE;
  }
}

export const footnoteReference: TokenizerAndRendererExtension = {
  name: "footnoteReference",
  level: "inline",
  start: (source) => {
    const at = source.indexOf("[^");
    return at < 0 ? undefined : at;
  },
  tokenizer(source) {
    const match = REFERENCE.exec(source);
    const number = current.numbers.get(match?.[1] ?? "");
    return match && number !== undefined ? { type: "footnoteReference", raw: match[0], number } : undefined;
  },
  renderer: (token) => `<sup class="footnote">[${Number(token.number)}]</sup>`,
};

/** The definition is shown at the end, not at its position. */
export const footnoteDefinition: TokenizerAndRendererExtension = {
  name: "footnoteDefinition",
  level: "block",
  start: (source) => inParagraph(source, /(?:^|\n) {0,3}\[\^/),
  tokenizer(source) {
    const match = DEFINITION.exec(source);
    return match ? { type: "footnoteDefinition", raw: match[0], name: match[1], text: match[0] } : undefined;
  },
  renderer: (token) => (current.numbers.has(String(token.name)) ? "" : `<p>${escaped(String(token.text))}</p>`),
};
