/** The position at which a custom block can interrupt a paragraph. */

import { spend } from "./budget";

/** Search only to the end of the paragraph: searching all the remaining text would take quadratic time. */
export function inParagraph(source: string, sought: RegExp): number | undefined {
  const end = source.search(/\n[ \t]*\n/);
  spend(end < 0 ? source.length : end);
  return sought.exec(end < 0 ? source : source.slice(0, end))?.index;
}
