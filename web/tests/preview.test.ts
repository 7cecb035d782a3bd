import { describe, expect, it } from "vitest";

import type { CallPart, Message } from "../src/api/types";
import { applyDiff, csvRows, partialField, versionsOf, writtenBy } from "../src/preview/sources";

const call = (tool: string, values: Partial<CallPart>): CallPart => ({ type: "call", id: tool, tool, arguments: {}, state: "completed", ...values }) as CallPart;
const messageOf = (...parts: Message["parts"]): Message => ({ id: "m", role: "assistant", parts }) as unknown as Message;
const DIFF = "diff --git a/a.html b/a.html\n--- a/a.html\n+++ b/a.html\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";

describe("previews", () => {
  it("reads a field of arguments that are still arriving, wherever they are cut", () => {
    const whole = '{"path": "a.html", "text": "<p>\\u00e9 \\"x\\"\\n</p>"}';
    for (let cut = 0; cut <= whole.length; cut++) {
      const text = partialField(whole.slice(0, cut), "text");
      if (text !== null) expect('<p>\u00e9 "x"\n</p>'.startsWith(text)).toBe(true);
    }
    expect(partialField(whole, "text")).toBe('<p>\u00e9 "x"\n</p>');
  });

  it("has a version for each write and edit of a file", () => {
    const wrote = call("write_file", { arguments: { path: "a.html", text: "one\ntwo\nthree\n" } });
    const edited = call("edit_file", { result: { text: "", metadata: { diff: DIFF } } as never });
    const { versions, at } = versionsOf([messageOf(wrote, edited)], { from: "file", path: "a.html" });
    expect(versions.map(({ text }) => text)).toEqual(["one\ntwo\nthree\n", "one\n2\nthree\n"]);
    expect(at).toBe(1);
    expect(writtenBy(edited)).toBe("a.html");
    expect(writtenBy(call("write_file", { arguments: { path: "a.py", text: "" } }))).toBeNull();
  });

  it("takes no diff that does not fit", () => expect(applyDiff("other\ntext\n", DIFF, "a.html")).toBeNull());

  it("finds the blocks of a kind, also one that is not closed yet", () => {
    const said = { type: "text", text: "```csv\na,b\n```\n\n```json\n{}\n```\n\n```csv\na,b\n1" } as never;
    const { versions } = versionsOf([messageOf(said)], { from: "block", kind: "csv", place: 0 });
    expect(versions.map(({ text }) => text)).toEqual(["a,b\n", "a,b\n1"]);
  });

  it("reads quoted fields of a table", () =>
    expect(csvRows('name,said\nAda,"a, ""b""\nc"\n')).toEqual({ columns: ["name", "said"], rows: [{ name: "Ada", said: 'a, "b"\nc' }] }));
});
