/** The text of an answer for reading aloud: without Markdown marks and without code. */

const LONGEST = 180;

export function spoken(text: string): string {
  return text
    .replace(/^(?:```|~~~)[\s\S]*?^(?:```|~~~)[^\n]*$/gm, " ")
    .replace(/\$\$[\s\S]*?\$\$/g, " ")
    .replace(/!\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/https?:\/\/\S+/g, " ")
    .replace(/<[^>]+>/g, " ")
    .replace(/^\s*\|?[\s:|-]*-{3,}[\s:|-]*$/gm, " ")
    .replace(/^\s{0,3}(?:#{1,6}|>|[-*+]|\d+\.)\s+/gm, "")
    .replace(/[*_`~|]+/g, " ")
    .replace(/[ \t]+/g, " ")
    .replace(/ ?\n\s*/g, "\n")
    .trim();
}

/** In chunks of about a sentence: browsers fall silent in the middle of long ones. */
export function sentences(text: string): string[] {
  const pieces: string[] = [];
  for (const sentence of text.match(/[^.!?。！？\n]+[.!?。！？]*\s*|\S+/g) ?? []) {
    for (let at = 0; at < sentence.length; at += LONGEST) {
      const piece = sentence.slice(at, at + LONGEST).trim();
      if (piece) pieces.push(piece);
    }
  }
  return pieces;
}
