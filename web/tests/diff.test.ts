/** A diff in the page: files, hunks, words that differ, both sides, colours, and the hunks that are chosen. */

import { describe, expect, it } from "vitest";

import { colour } from "../src/diff/colours";
import { Kept } from "../src/calls/kept";
import { madeHunks } from "../src/diff/made";
import { withPlainNames } from "../src/diff/names";
import { changesOf, headOf, differences, isToldBy, newSide, pairs, parseDiff, textOf, type Hunk } from "../src/diff/parse";
import { HunkPicks } from "../src/diff/picks.svelte";

const DIFF =
  "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n--- two\n+++ 2\n\\ No newline at end of file\n" +
  "@@ -9 +9,2 @@\n x\n+y\ndiff --git a/g b/g\nnew file mode 100644\n--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+z\n";

const hunk = (body: string): Hunk => parseDiff(`@@ -1 +1 @@\n${body}`)[0]?.hunks[0] as Hunk;

describe("a diff (B2)", () => {
  it("has names as heads, and lines of a hunk that look like names are none", () => {
    const [f, g] = parseDiff(DIFF);
    expect([f?.name, g?.name]).toEqual(["f", "g"]);
    expect(f?.head).toHaveLength(3);
    expect(f?.hunks[0]?.rows.map((row) => row.kind)).toEqual(["same", "removed", "added", "note"]);
    expect([f, g].flatMap((file) => file?.hunks ?? []).map((one) => one.number)).toEqual([0, 1, 2]);
  });

  it("names files that git quotes as others, and hides nothing of their names", () => {
    const quoted = (name: string): string => `diff --git "a/${name}" "b/${name}"\nnew file mode 100644\n--- /dev/null\n+++ "b/${name}"\n@@ -0,0 +1 @@\n+"b/x"\n`;
    const shown = (diff: string): unknown => parseDiff(diff).map(withPlainNames).map((file) => [headOf(file)?.name, headOf(file)?.kind, headOf(file)?.rest]);
    expect(shown(quoted(String.raw`secret\342\200\256gnp.txt`) + quoted(String.raw`a \"b\" \\302 é\t.txt`))).toEqual([
      ["secret\\u202egnp.txt", "new", []],
      ['a "b" \\302 é\\t.txt', "new", []],
    ]);
    const unquoted = 'diff --git a/say "hi".txt b/say "hi".txt\n--- a/say "hi".txt\n+++ b/say "hi".txt\n@@ -1 +1 @@\n-a\n+b\n';
    for (const diff of [DIFF, unquoted]) expect(parseDiff(diff).map(withPlainNames)).toEqual(parseDiff(diff));
    expect(withPlainNames(parseDiff('diff --git a/x "b/\\342\\200\\213y"\nrename from x\nrename to "\\342\\200\\213y"\n')[0] as never).name).toBe("\\u200by");
  });

  it("loses nothing of a line when its words are compared", () => {
    for (const [old, fresh] of [["a b c", "a x c"], ["", "new"], ["same", "same"], ["über 3", "unter 33"], ["ab", "ba"]] as const) {
      const [left, right] = differences(old, fresh);
      expect(left.map((piece) => piece.text).join("")).toBe(old);
      expect(right.map((piece) => piece.text).join("")).toBe(fresh);
      const alike = (pieces: typeof left): string => pieces.filter((piece) => !piece.differs).map((piece) => piece.text).join("");
      expect(alike(left)).toBe(alike(right));
    }
    expect(differences("return a + b", "return a - b")[1].filter((piece) => piece.differs)).toEqual([{ text: "-", differs: true }]);
  });

  it("puts what came beside what went", () => {
    const rows = hunk(" a\n-b\n-c\n+B\n d\n+e\n").rows;
    expect(pairs(rows).map(([left, right]) => [left && textOf(left), right && textOf(right)])).toEqual([
      ["a", "a"],
      ["b", "B"],
      ["c", null],
      ["d", "d"],
      [null, "e"],
    ]);
  });

  it("has colours that change no character", () => {
    const one = hunk('-s = """a\n-b""" < 3\n+s = "a" & 4\n');
    const colours = colour(one.rows, "python");
    for (const row of one.rows) expect(colours?.get(row)?.map((piece) => piece.text).join("")).toBe(textOf(row));
    expect(colours?.get(one.rows[1] as Hunk["rows"][0])?.[0]?.look).toContain("hljs-string"); // of the line before
    expect(colour(one.rows, "nothing")).toBeNull();
  });

  it("is made whole, unless a hunk is left out or edited", () => {
    const picks = new HunkPicks(3);
    expect(picks.other).toBe(false);
    picks.turn(1, false);
    picks.write(2, newSide(hunk(" a\n-b\n+c\n")));
    expect(picks.chosen()).toEqual([
      { hunk: 0, text: null },
      { hunk: 2, text: "a\nc\n" },
    ]);
    expect([picks.other, picks.made]).toEqual([true, 2]);
    picks.turn(1, true);
    picks.write(2, null);
    expect(picks.other).toBe(false);
  });
});

describe("the head of a file in a diff", () => {
  const head = (text: string): unknown => headOf(parseDiff(text)[0]!);
  it("is its name, once, where nothing else is said", () => {
    expect(head("diff --git a/f b/f\nindex 12ab..34cd 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n")).toEqual({ name: "f", kind: "changed", rest: [] });
    expect(head("diff --git a/g b/g\nnew file mode 100644\n--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+z\n")).toEqual({ name: "g", kind: "new", rest: [] });
    expect(head("diff --git a/g b/g\ndeleted file mode 100644\n--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-z\n")).toEqual({ name: "g", kind: "deleted", rest: [] });
  });

  it("keeps every word that is news, and all where the names differ", () => {
    expect(head("diff --git a/f b/f\nold mode 100644\nnew mode 100755\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n")).toMatchObject({ rest: ["old mode 100644", "new mode 100755"] });
    expect(head("diff --git a/g b/g\nnew file mode 100755\n--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+z\n")).toBeNull();
    expect(head("diff --git a/f b/g\nrename from f\nrename to g\n--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n")).toBeNull();
  });
});

describe("what a diff tells", () => {
  it("names the files, and counts what came and went", () => {
    expect(changesOf(DIFF)).toEqual({ names: "f, g", added: 3, removed: 1 });
  });

  it("is a text only where each line of it stands there", () => {
    expect(isToldBy(DIFF, "one\n++ 2\n")).toBe(true);
    expect(isToldBy(DIFF, "rm -r old\nz\n")).toBe(false);
  });

  it("has a name also where nothing changes", () => {
    expect(headOf(parseDiff("diff --git a/a b.txt b/a b.txt\n")[0]!)).toEqual({ name: "a b.txt", kind: "changed", rest: [] });
  });
});

describe("hunks as a person wants them made (B2)", () => {
  const [file] = parseDiff("--- a/f\n+++ b/f\n@@ -2,3 +2,4 @@ def f\n a\n-b\n+B\n+c\n d\n@@ -10,2 +11,3 @@\n x\n+y\n z\n@@ -20 +22 @@\n-p\n+q\n");
  const hunks = file?.hunks ?? [];
  const made = (left: number[], texts: Record<number, string>): unknown =>
    madeHunks(hunks, { has: (hunk) => !left.includes(hunk), text: (hunk) => texts[hunk] ?? null }).map(({ place, added, removed }) => [place, added, removed]);

  it("are what was asked for until something is changed", () => {
    expect(made([], {})).toEqual([["@@ -2,3 +2,4 @@ def f", 2, 1], ["@@ -10,2 +11,3 @@", 1, 0], ["@@ -20 +22 @@", 1, 1]]);
  });

  it("are counted as they were written, and the later ones are where they come to be", () => {
    const written = made([], { 0: "a\nB\nc\n# one\n# two\nd\n" });
    expect(written).toEqual([["@@ -2,3 +2,6 @@ def f", 4, 1], ["@@ -10,2 +13,3 @@", 1, 0], ["@@ -20 +24 @@", 1, 1]]);
    expect(made([], { 0: "a\nb\nd\n" })).toMatchObject([["@@ -2,3 +2,3 @@ def f", 0, 0], ["@@ -10,2 +10,3 @@", 1, 0], ["@@ -20 +21 @@", 1, 1]]);
    expect(made([], { 2: "" })).toMatchObject([[expect.anything(), 2, 1], [expect.anything(), 1, 0], ["@@ -20 +21,0 @@", 0, 1]]);
  });

  it("that are left out come to nothing", () => {
    expect(made([0], {})).toEqual([["@@ -2,3 +2,3 @@ def f", 0, 0], ["@@ -10,2 +10,3 @@", 1, 0], ["@@ -20 +21 @@", 1, 1]]);
  });

  it("stand as they were left when they are shown the next time", () => {
    const kept = new Kept("ask_1");
    const picks = new HunkPicks(3, kept);
    picks.turn(1, false);
    picks.write(2, "other\n");
    const again = new HunkPicks(3, new Kept("ask_1"));
    expect([again.has(1), again.text(2), again.made]).toEqual([false, "other\n", 2]);
    again.turn(1, true);
    again.write(2, null);
    expect(new HunkPicks(3, kept).other).toBe(false);
    expect(sessionStorage.getItem("dragoman.draft.ask.ask_1")).toBeNull();
  });
});
