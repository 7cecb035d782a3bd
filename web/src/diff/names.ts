/** Names that git quotes, because they hold what is not seen or would break a line, as they are shown. */

import { visible } from "../calls/visible";
import { parseDiff, type FileChange } from "./parse";

const QUOTED = /(?<=^(?:---|\+\+\+|rename from|rename to|diff --git(?: .*)?) )"((?:[^"\\]|\\.)*)"(?= "?b\/|$)/g;
const ESCAPED = /((?:\\[0-3][0-7]{2})+)|\\(["\\])/g;

/** Bytes that are written as numbers are characters again, of which none is hidden; a tab and the end of a line stay `\t`, `\n`. */
const plain = (name: string): string =>
  name.replace(ESCAPED, (_, bytes: string | undefined, sign: string) =>
    bytes ? visible(new TextDecoder().decode(Uint8Array.from(bytes.slice(1).split("\\"), (byte) => parseInt(byte, 8)))) : sign,
  );

export function withPlainNames(file: FileChange): FileChange {
  const head = file.head.map((line) => line.replace(QUOTED, (_, name: string) => plain(name)));
  return { ...file, head, name: file.name.startsWith('"') || !file.name ? (parseDiff(head.join("\n"))[0]?.name ?? "") : file.name };
}
