/** The beginning of a long text, and how much is left out. */

export interface Cut {
  text: string;
  /** Hidden lines; 0 where only characters are hidden. */
  lines: number;
  whole: boolean;
}

export const SLACK = 1.25; // to hide a little is not worth a button

export function cutText(text: string, limit: number, lines: number): Cut {
  let end = 0;
  let seen = 0;
  while (seen < lines && end >= 0) {
    end = text.indexOf("\n", end);
    seen++;
    if (end >= 0) end++;
  }
  const short = end < 0 || countLines(text) <= lines * SLACK;
  if (short && text.length <= limit * SLACK) return { text, lines: 0, whole: true };
  const shown = text.slice(0, Math.min(short ? Infinity : end - 1, limit));
  return { text: shown, lines: countLines(text) - countLines(shown), whole: false };
}

/** The end of the last line begins no other. */
function countLines(text: string): number {
  let count = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < text.length - 1; at = text.indexOf("\n", at + 1)) count++;
  return count;
}
