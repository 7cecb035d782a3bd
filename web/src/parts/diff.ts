/** A unified diff as lines, each with what it is. */

export type DiffLine = { text: string; kind: "added" | "removed" | "same" | "place" | "head" };

const CHUNK = 200;

export function linesOf(diff: string): DiffLine[] {
  let within = false; // a hunk: before the first, lines that begin with + and - are names
  return diff
    .replace(/\n$/, "")
    .split("\n")
    .map((text) => {
      if (text.startsWith("diff --git ")) within = false;
      if (text.startsWith("@@")) {
        within = true;
        return { text, kind: "place" };
      }
      if (!within) return { text, kind: "head" };
      return { text, kind: text.startsWith("+") ? "added" : text.startsWith("-") ? "removed" : "same" };
    });
}

export function chunks(lines: DiffLine[]): DiffLine[][] {
  const found: DiffLine[][] = [];
  for (let at = 0; at < lines.length; at += CHUNK) found.push(lines.slice(at, at + CHUNK));
  return found;
}
