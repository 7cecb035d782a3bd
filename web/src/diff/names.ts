/** Display names for paths that git quotes, because they contain invisible characters or a line break. */

import { visible } from "../calls/visible";
import { parseDiff, type FileChange } from "./parse";

const QUOTED = /(?<=^(?:---|\+\+\+|rename from|rename to|diff --git(?: .*)?) )"((?:[^"\\]|\\.)*)"(?= "?b\/|$)/g;
const ESCAPED = /((?:\\[0-3][0-7]{2})+)|\\(["\\])/g;

/** Decode octal escapes into visible characters. A tab and a line end stay `\t` and `\n`. */
const plain = (name: string): string =>
  name.replace(ESCAPED, (_, bytes: string | undefined, sign: string) =>
    bytes ? visible(new TextDecoder().decode(Uint8Array.from(bytes.slice(1).split("\\"), (byte) => parseInt(byte, 8)))) : sign,
  );

export function withPlainNames(file: FileChange): FileChange {
  const head = file.head.map((line) => line.replace(QUOTED, (_, name: string) => plain(name)));
  return { ...file, head, name: file.name.startsWith('"') || !file.name ? (parseDiff(head.join("\n"))[0]?.name ?? "") : file.name };
}
