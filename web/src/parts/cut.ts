/** The first part of a long text, and how much is hidden. */

export interface Cut {
  text: string;
  /** Hidden lines; 0 if only characters are hidden. */
  lines: number;
  whole: boolean;
}

export const SLACK = 1.25; // hiding only a little does not justify a button

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

/** A line end at the end of the text does not start another line. */
function countLines(text: string): number {
  let count = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < text.length - 1; at = text.indexOf("\n", at + 1)) count++;
  return count;
}
