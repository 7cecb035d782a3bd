/** A unified diff in the page: which line is what. */

import { describe, expect, it } from "vitest";

import { chunks, linesOf } from "../src/parts/diff";

const DIFF = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n--- two\n+++ 2\n\\ No newline at end of file\n";

describe("a diff (B2)", () => {
  it("has names as heads, and lines of a hunk that look like names are none", () => {
    expect(linesOf(DIFF).map((line) => line.kind)).toEqual(["head", "head", "head", "place", "same", "removed", "added", "same"]);
  });

  it("is cut into pieces that lose nothing", () => {
    const lines = linesOf(`@@\n${"+line\n".repeat(450)}`);
    expect(chunks(lines).map((piece) => piece.length)).toEqual([200, 200, 51]);
  });
});
