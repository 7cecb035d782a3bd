/** Where a paragraph may be cut short by a block of ours. */

import { spend } from "./budget";

/** The place of what is sought before the paragraph ends: looked for in all that follows, a long text would take a square of time. */
export function inParagraph(source: string, sought: RegExp): number | undefined {
  const end = source.search(/\n[ \t]*\n/);
  spend(end < 0 ? source.length : end);
  return sought.exec(end < 0 ? source : source.slice(0, end))?.index;
}
