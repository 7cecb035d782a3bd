/** Chunks of code in the colours of their language. Loaded when the first diff in a known language is shown. */

import { highlight } from "../markdown/highlight";
import type { Piece, Row } from "./parse";
import { textOf } from "./parse";

export type Coloured = Piece & { look: string };

const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };
const TOKEN = /<span class="([^"]*)">|<\/span>|([^<]+)/g;

const LANGUAGES: Record<string, string> = {
  py: "python", js: "javascript", mjs: "javascript", jsx: "javascript", ts: "typescript", tsx: "typescript", sh: "bash",
  yml: "yaml", toml: "ini", rs: "rust", rb: "ruby", md: "markdown", htm: "xml", html: "xml", svelte: "xml", vue: "xml",
  h: "c", cc: "cpp", hpp: "cpp", cs: "csharp", kt: "kotlin", pl: "perl", makefile: "makefile", dockerfile: "bash",
}; // prettier-ignore

export function languageOf(name: string): string {
  const file = (name.split("/").at(-1) ?? "").toLowerCase();
  const ending = file.includes(".") ? (file.split(".").at(-1) ?? "") : file;
  return LANGUAGES[ending] ?? ending;
}

/** The rows of one side are highlighted together, because a string can span several lines. */
export function colour(rows: Row[], language: string): Map<Row, Coloured[]> | null {
  const found = new Map<Row, Coloured[]>();
  for (const side of ["old", "new"] as const) {
    const mine = rows.filter((row) => row[side] !== null);
    const html = highlight(mine.map(textOf).join("\n"), language);
    if (html === null) return null;
    const lines = linesIn(html);
    mine.forEach((row, at) => found.set(row, merged(row.pieces, lines[at] ?? [])));
  }
  return found;
}

type Look = { text: string; look: string };

function linesIn(html: string): Look[][] {
  const lines: Look[][] = [[]];
  const open: string[] = [];
  for (const [tag, name, escaped] of html.matchAll(TOKEN)) {
    if (name !== undefined) open.push(name);
    else if (escaped === undefined) open.pop();
    else if (tag) {
      const text = escaped.replace(/&(?:amp|lt|gt|quot|#x27);/g, (entity) => ENTITIES[entity] ?? entity);
      text.split("\n").forEach((piece, at) => {
        if (at) lines.push([]);
        if (piece) lines.at(-1)?.push({ text: piece, look: open.join(" ") });
      });
    }
  }
  return lines;
}

/** Split wherever the colour or the difference mark changes. */
function merged(pieces: Piece[], looks: Look[]): Coloured[] {
  const found: Coloured[] = [];
  let [at, used] = [0, 0]; // index of a look, and how much of it is used
  for (const piece of pieces) {
    let rest = piece.text;
    while (rest) {
      const look = looks[at];
      if (!look) {
        found.push({ text: rest, differs: piece.differs, look: "" });
        break;
      }
      const text = rest.slice(0, look.text.length - used);
      found.push({ text, differs: piece.differs, look: look.look });
      rest = rest.slice(text.length);
      used += text.length;
      if (used >= look.text.length) [at, used] = [at + 1, 0];
    }
  }
  return found;
}
