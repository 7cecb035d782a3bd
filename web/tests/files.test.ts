/** Paths that a model writes in, names out; what points outside is refused. And what the files may hold. */

import { describe, expect, it } from "vitest";

import { fileNames, namesIn, PathRefused } from "../src/files/paths";
import { BrowserFiles, type Entry, QUOTA, READ_LIMIT, type Shelf } from "../src/files/store";
import { brokered, runJavaScript } from "../src/sandbox/run";

describe("paths (U4)", () => {
  it.each([
    ["", []],
    [".", []],
    ["a", ["a"]],
    ["a/b.txt", ["a", "b.txt"]],
    ["./a//b/", ["a", "b"]],
    ["..a/b..", ["..a", "b.."]],
    ["été/文件", ["été", "文件"]],
  ])("%j leads through %j", (path, names) => {
    expect(namesIn(path)).toEqual(names);
  });

  it.each(["..", "a/../b", "../a", "/etc/passwd", "C:\\x", "c:/x", "a\\..\\b", "a\0b", "a\nb", "a/".repeat(20), "x".repeat(200)])(
    "%j is refused",
    (path) => {
      expect(() => namesIn(path)).toThrow(PathRefused);
    },
  );

  it("a file needs a name", () => {
    expect(() => fileNames("./")).toThrow(PathRefused);
  });
});

/** A shelf in memory: jsdom has neither of the real ones. */
function shelf(): Shelf & { kept: Map<string, Blob> } {
  const kept = new Map<string, Blob>();
  return {
    kept,
    list(names) {
      const prefix = names.length ? `${names.join("/")}/` : "";
      const found = new Map<string, Entry>();
      for (const [path, data] of kept) {
        if (!path.startsWith(prefix)) continue;
        const [name = "", ...rest] = path.slice(prefix.length).split("/");
        found.set(name, { name, path: prefix + name, folder: rest.length > 0, size: rest.length ? 0 : data.size });
      }
      return Promise.resolve(found.size || !names.length ? [...found.values()] : null);
    },
    read: (names) => Promise.resolve(kept.get(names.join("/")) ?? null),
    write: (names, data) => Promise.resolve(void kept.set(names.join("/"), data)),
    remove: (names) => Promise.resolve(void kept.delete(names.join("/"))),
  };
}

const sized = (size: number): Blob => Object.defineProperty(new Blob(["x"]), "size", { value: size });

describe("files (U4)", () => {
  it("are written, listed, counted and removed", async () => {
    const files = new BrowserFiles(shelf());
    await files.write("b.txt", "hello");
    await files.write("notes/a.md", "# é");
    expect((await files.list()).map((entry) => entry.path)).toEqual(["notes", "b.txt"]);
    expect((await files.all()).map((entry) => entry.path)).toEqual(["notes/a.md", "b.txt"]);
    expect(await files.used()).toBe(9);
    await files.remove("b.txt");
    expect(await files.used()).toBe(4);
    await expect(files.read("b.txt")).rejects.toThrow("there is no file b.txt");
    await expect(files.list("nowhere")).rejects.toThrow("there is no folder nowhere");
  });

  it("keep to their quota, counting a file that is replaced once", async () => {
    const files = new BrowserFiles(shelf());
    await files.write("big", sized(QUOTA - 10));
    await expect(files.write("more", sized(11))).rejects.toThrow("no room");
    await files.write("big", sized(QUOTA));
  });

  it("are not read back where they are too long", async () => {
    const files = new BrowserFiles(shelf());
    await files.write("long", sized(READ_LIMIT + 1));
    await expect(files.read("long")).rejects.toThrow("can be read as text");
  });

  it("are reached by code only through read, write and list, with the same checks", async () => {
    const { kept, ...rest } = shelf();
    const files = new BrowserFiles(rest);
    await brokered(files, "write", ["a/b.txt", "hi"]);
    expect([...kept.keys()]).toEqual(["a/b.txt"]);
    expect(await brokered(files, "list", ["a"])).toEqual([{ name: "b.txt", folder: false, size: 2 }]);
    await expect(brokered(files, "write", ["../x", "hi"])).rejects.toThrow(PathRefused);
    await expect(brokered(files, "remove", ["a/b.txt"])).rejects.toThrow("files cannot remove");
  });

  it("are not touched where the sandbox could not be loaded, and nobody says that code ran", async () => {
    const { text } = await runJavaScript("while (true) {}", new BrowserFiles(shelf()), 5);
    expect(text).toContain("did not run");
  });
});
