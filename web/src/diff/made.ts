/** The hunks of a file as the user wants them applied: the resulting position of each, and how many lines it adds
 * and removes. */

import { textOf, type Hunk, type Row } from "./parse";

export interface MadeHunk {
  place: string;
  added: number;
  removed: number;
}

/** Which hunks are applied, and with which new side; null: the original one. */
export interface Chosen {
  has: (hunk: number) => boolean;
  text: (hunk: number) => string | null;
}

const PLACE = /^@@ -(\d+(?:,\d+)?) \+(\d+)(?:,\d+)? @@/;
const MOST = 500_000; // maximum number of line pairs to compare

export function madeHunks(hunks: Hunk[], chosen: Chosen): MadeHunk[] {
  let moved = 0; // offset in lines from the requested position
  return hunks.map((hunk) => {
    const [before, asked] = [sideOf(hunk, "old"), sideOf(hunk, "new")];
    const text = chosen.text(hunk.number);
    const after = !chosen.has(hunk.number) ? before : text === null ? asked : linesOf(text);
    const kept = after === before ? before.length : inBoth(before, after);
    const place = moved || after.length !== asked.length ? placeOf(hunk.place, moved, after.length, asked.length) : hunk.place;
    moved += after.length - asked.length;
    return { place, added: after.length - kept, removed: before.length - kept };
  });
}

const sideOf = ({ rows }: Hunk, side: "old" | "new"): string[] => rows.filter((row: Row) => row[side] !== null).map(textOf);

const linesOf = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

function placeOf(place: string, moved: number, lines: number, asked: number): string {
  const none = Number(lines === 0) - Number(asked === 0); // a side without lines takes the number of the line before it
  return place.replace(PLACE, (_, old: string, start: string) => {
    const first = Number(start) + moved - none;
    return `@@ -${old} +${lines === 1 ? first : `${first},${lines}`} @@`;
  });
}

/** How many lines stay: the longest common subsequence of both sides. */
function inBoth(before: string[], after: string[]): number {
  const least = Math.min(before.length, after.length);
  let [top, end] = [0, 0];
  while (top < least && before[top] === after[top]) top += 1;
  while (end < least - top && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const [left, right] = [before.slice(top, before.length - end), after.slice(top, after.length - end)];
  return top + end + (left.length * right.length > MOST ? 0 : longest(left, right));
}

function longest(left: string[], right: string[]): number {
  let row = new Array<number>(right.length + 1).fill(0);
  for (const line of left) {
    const next = [0];
    right.forEach((other, at) => next.push(line === other ? (row[at] ?? 0) + 1 : Math.max(row[at + 1] ?? 0, next[at] ?? 0)));
    row = next;
  }
  return row.at(-1) ?? 0;
}
