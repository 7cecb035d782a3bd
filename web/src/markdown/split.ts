/** Split Markdown into blocks. While text streams in, finished blocks stay unchanged and only the tail is parsed
 * again. */

import type { Token } from "marked";

import { lex } from "./parse";

const OPENS_FORMULA = /^ {0,3}(?:\$\$|\\\[)/;

const SECTION = 12; // blocks

/** Consecutive blocks. A full section stays the same object, so that it is not processed again. */
export interface Section {
  blocks: string[];
  full: boolean;
}

export class Splitter {
  private text = "";
  private settled = 0; // length of the text in finished blocks
  private full: Section[] = [];
  private last: string[] = []; // finished blocks that do not fill a section yet

  /** Sections of blocks. Joined, they are the text. */
  split(text: string): Section[] {
    if (!text.startsWith(this.text)) {
      this.settled = 0;
      this.full = [];
      this.last = [];
    }
    this.text = text;
    const tokens = lex(text.slice(this.settled));
    // A list or a quote can continue after a blank line: it ends when another block has begun.
    let open = tokens.length - 1;
    while (open > 0 && tokens[open]?.type === "space") open--;
    // A formula that is not closed yet looks like paragraphs.
    const formula = tokens.findIndex((token) => token.type !== "blockMath" && OPENS_FORMULA.test(token.raw));
    if (formula >= 0) open = Math.min(open, formula);
    const groups = grouped(tokens.slice(0, Math.max(0, open)));
    for (const raw of groups) {
      this.finish(raw);
      this.settled += raw.length;
    }
    const tail = text.slice(this.settled);
    const blocks = tail ? [...this.last, tail] : [...this.last];
    return blocks.length ? [...this.full, { blocks, full: false }] : [...this.full];
  }

  /** Blank lines belong to the block before them. */
  private finish(raw: string): void {
    const before = this.last.at(-1);
    if (before !== undefined && /^\s*$/.test(raw)) {
      this.last[this.last.length - 1] = before + raw;
      return;
    }
    if (this.last.length === SECTION) {
      this.full.push({ blocks: this.last, full: true });
      this.last = [];
    }
    this.last.push(raw);
  }
}

const opens = (html: string): number => (html.match(/<details\b/gi)?.length ?? 0) - (html.match(/<\/details>/gi)?.length ?? 0);

/** Content inside details forms one block with them. Unclosed details are omitted, with all that follows. */
function grouped(tokens: Token[]): string[] {
  const blocks: string[] = [];
  let inside = "";
  let depth = 0;
  for (const { type, raw } of tokens) {
    if (type === "html") depth = Math.max(0, depth + opens(raw));
    inside += raw;
    if (depth > 0) continue;
    blocks.push(inside);
    inside = "";
  }
  return blocks;
}

const DEFINITION = /^ {0,3}\[([^\]^][^\]]*)\]:\s*\S.*$/gm;
const NAMED = /\[([^[\]]+)\]/g;

const plain = (name = ""): string => name.trim().replace(/\s+/g, " ").toLowerCase();

export type Links = Map<string, string>;
export const NO_LINKS: Links = new Map();

/** Link definitions apply to the whole text, wherever they are. Keyed by name; the first definition wins. */
export function definitions(text: string): Links {
  if (!text.includes("]:")) return NO_LINKS;
  const found: Links = new Map();
  for (const [line, name] of text.matchAll(DEFINITION)) if (!found.has(plain(name))) found.set(plain(name), line);
  return found;
}

/** The definitions that a block can need: adding all of them to each block would take quadratic time. */
export function linksIn(block: string, found: Links): string {
  if (!found.size) return "";
  const names = new Set([...block.matchAll(NAMED)].map(([, name]) => plain(name)));
  return [...names].flatMap((name) => found.get(name) ?? []).join("\n");
}
