/** The tree of messages: which branch is shown, and what stands together as one answer. */

import { describe, expect, it } from "vitest";

import { blocks, Branches } from "../src/state/tree";

function grown(): Branches {
  const tree = new Branches();
  for (const [id, parent] of [["q", null], ["a1", "q"], ["a2", "q"], ["q2", "a1"], ["b", "q2"]] as const) tree.add(id, parent);
  return tree;
}

describe("branches (T10, S1)", () => {
  it("counts versions, oldest first", () => {
    expect(grown().versions("a2")).toEqual(["a1", "a2"]);
    expect(grown().versions("q")).toEqual(["q"]);
  });

  it("shows the path to a leaf, and the newest tip below a message", () => {
    const tree = grown();
    expect(tree.path("b")).toEqual(["q", "a1", "q2", "b"]);
    expect(tree.tip("a1")).toBe("b");
    expect(tree.tip("q")).toBe("a2");
    expect(tree.newest()).toBe("a2");
  });

  it("takes a message once", () => {
    const tree = grown();
    expect(tree.add("b", "q2")).toBe(false);
    expect(tree.versions("b")).toEqual(["b"]);
  });
});

describe("blocks", () => {
  it("makes one answer of all messages of a turn, and keeps what a person said apart", () => {
    const roles = { q: "user", a: "assistant", b: "assistant", s: "user", c: "assistant" } as const;
    const found = blocks(Object.keys(roles), (id) => ({ role: roles[id as keyof typeof roles], author: null }));
    expect(found.map(({ kind, ids }) => [kind, ids])).toEqual([["said", ["q"]], ["answer", ["a", "b"]], ["said", ["s"]], ["answer", ["c"]]]);
  });

  it("puts what a plugin wrote into the answer", () => {
    const found = blocks(["q", "p", "a"], (id) => ({ role: id === "a" ? "assistant" : "user", author: id === "p" ? "plugin" : null }));
    expect(found.map(({ ids }) => ids)).toEqual([["q"], ["p", "a"]]);
  });
});
