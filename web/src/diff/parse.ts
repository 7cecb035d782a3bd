/** Parse a unified diff into files, hunks and rows. In rows that replace each other, mark the words that differ. */

export type Piece = { text: string; differs: boolean };
export type Row = { kind: "added" | "removed" | "same" | "note"; pieces: Piece[]; old: number | null; new: number | null };
/** `number`: its index among all hunks of the diff, from 0. */
export type Hunk = { number: number; place: string; rows: Row[] };
export type FileChange = { name: string; head: string[]; hunks: Hunk[] };
export type Pair = [Row | null, Row | null];

const LONGEST = 1000; // maximum number of characters of a line that is compared by word
const WORD = /\p{L}+|\p{N}+|\s+|[^\p{L}\p{N}\s]/gu;
const PLACE = /^@@ -(\d+)(?:,\d+)? \+(\d+)/;
const NAME = /^(?:\+\+\+ b\/|--- a\/|rename to )(.*)$/;

export function parseDiff(diff: string): FileChange[] {
  const files: FileChange[] = [];
  let [oldLine, newLine, number] = [0, 0, 0];
  for (const line of diff.replace(/\n$/, "").split("\n")) {
    const place = PLACE.exec(line);
    let file = files.at(-1);
    if (!file || line.startsWith("diff --git ")) files.push((file = { name: "", head: [], hunks: [] }));
    if (place) {
      [oldLine, newLine] = [Number(place[1]), Number(place[2])];
      file.hunks.push({ number: number++, place: line, rows: [] });
    } else if (!file.hunks.length) {
      file.head.push(line);
      file.name = NAME.exec(line)?.[1] ?? (file.name || bothNames(line));
    } else {
      const row = rowOf(line, oldLine, newLine);
      if (row.old !== null) oldLine += 1;
      if (row.new !== null) newLine += 1;
      file.hunks.at(-1)?.rows.push(row);
    }
  }
  for (const file of files) for (const hunk of file.hunks) markWords(hunk.rows);
  return files;
}

/** The name, if both sides have the same one. This also works for a file without changes. */
function bothNames(line: string): string {
  return /^diff --git a\/(.*) b\/\1$/.exec(line)?.[1] ?? "";
}

function rowOf(line: string, oldLine: number, newLine: number): Row {
  const pieces = [{ text: line.slice(1), differs: false }];
  if (line.startsWith("+")) return { kind: "added", pieces, old: null, new: newLine };
  if (line.startsWith("-")) return { kind: "removed", pieces, old: oldLine, new: null };
  if (line.startsWith("\\")) return { kind: "note", pieces, old: null, new: null };
  return { kind: "same", pieces, old: oldLine, new: newLine };
}

/** If the number of added and removed lines is equal, each added line is a new version of a removed one. */
function markWords(rows: Row[]): void {
  for (const [removed, added] of replaced(rows)) {
    if (removed.length !== added.length) continue;
    removed.forEach((row, at) => {
      const other = added[at] as Row;
      const [left, right] = differences(textOf(row), textOf(other));
      [row.pieces, other.pieces] = [left, right];
    });
  }
}

function replaced(rows: Row[]): [Row[], Row[]][] {
  const found: [Row[], Row[]][] = [];
  let open: [Row[], Row[]] = [[], []];
  for (const row of [...rows, null]) {
    if (row?.kind === "note") continue;
    if (row?.kind === "removed" && !open[1].length) open[0].push(row);
    else if (row?.kind === "added") open[1].push(row);
    else {
      if (open[0].length && open[1].length) found.push(open);
      open = [row?.kind === "removed" ? [row] : [], []];
    }
  }
  return found;
}

/** Equal words at both ends stay unmarked. Between them, the longest common subsequence of words does. */
export function differences(old: string, fresh: string): [Piece[], Piece[]] {
  if (old.length > LONGEST || fresh.length > LONGEST) return [[{ text: old, differs: true }], [{ text: fresh, differs: true }]];
  const [a, b] = [old.match(WORD) ?? [], fresh.match(WORD) ?? []];
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  const at = (i: number, j: number): number => lengths[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      (lengths[i] as Uint16Array)[j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const [left, right]: [Piece[], Piece[]] = [[], []];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      add(left, a[i++] as string, false);
      add(right, b[j++] as string, false);
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) add(left, a[i++] as string, true);
    else add(right, b[j++] as string, true);
  }
  return [left, right];
}

function add(pieces: Piece[], text: string, differs: boolean): void {
  const last = pieces.at(-1);
  if (last?.differs === differs) last.text += text;
  else pieces.push({ text, differs });
}

export type Head = { name: string; kind: "new" | "deleted" | "changed"; rest: string[] };

const MADE = /^(new|deleted) file mode 100644$/;

/** Summarize the lines before the hunks: the name, whether the file is new or deleted, and everything else. Null if
 * the lines contradict each other. */
export function headOf({ name, head }: FileChange): Head | null {
  if (!name) return null;
  const kind = head.map((line) => MADE.exec(line)?.[1]).find(Boolean) as Head["kind"] | undefined;
  const names = head.filter((line) => /^(?:---|\+\+\+) /.test(line)).length > 0; // they are missing if nothing changes
  const usual = [
    `diff --git a/${name} b/${name}`,
    `--- ${kind === "new" ? "/dev/null" : `a/${name}`}`,
    `+++ ${kind === "deleted" ? "/dev/null" : `b/${name}`}`,
  ];
  if (!usual.slice(0, names ? 3 : 1).every((line) => head.includes(line))) return null;
  const rest = head.filter((line) => !usual.includes(line) && !MADE.test(line) && !/^index [0-9a-f]+\.\.[0-9a-f]+/.test(line));
  return { name, kind: kind ?? "changed", rest };
}

/** The files of a diff, and how many lines it adds and removes. */
export function changesOf(diff: string): { names: string; added: number; removed: number } {
  const files = parseDiff(diff);
  const rows = files.flatMap(({ hunks }) => hunks.flatMap((hunk) => hunk.rows));
  const count = (kind: Row["kind"]): number => rows.filter((row) => row.kind === kind).length;
  return { names: files.map(({ name }) => name).filter(Boolean).join(", "), added: count("added"), removed: count("removed") };
}

/** Whether the diff contains every line of a text. */
export function isToldBy(diff: string, text: string): boolean {
  const rows = parseDiff(diff).flatMap(({ hunks }) => hunks.flatMap((hunk) => hunk.rows.map(textOf)));
  const lines = new Set(rows);
  return text.replace(/\n$/, "").split("\n").every((line) => lines.has(line));
}

export const textOf = (row: Row): string => row.pieces.map((piece) => piece.text).join("");

/** Both sides in rows: each removed line with the line that replaces it. */
export function pairs(rows: Row[]): Pair[] {
  const found: Pair[] = [];
  let waiting = 0; // the first removed row without a counterpart
  for (const row of rows) {
    if (row.kind === "removed") found.push([row, null]);
    else if (row.kind === "added" && waiting < found.length) (found[waiting++] as Pair)[1] = row;
    else {
      found.push(row.kind === "added" ? [null, row] : [row, row]);
      waiting = found.length;
    }
  }
  return found;
}

/** The new side of a hunk, to be edited. */
export const newSide = (hunk: Hunk): string =>
  hunk.rows
    .filter((row) => row.new !== null)
    .map((row) => `${textOf(row)}\n`)
    .join("");
