/** A value and a schema in, what does not fit out: before it is sent, not instead of the server's own check. */

import { describe, expect, it } from "vitest";

import type { Json, Schema } from "../src/api/types";
import { fieldsOf, startOf } from "../src/calls/fields";
import { misfits } from "../src/calls/schema";

const SCHEMA: Schema = {
  type: "object",
  properties: {
    name: { type: "string", minLength: 1 },
    times: { type: "integer", minimum: 1, maximum: 9 },
    colour: { enum: ["red", "green"] },
    tags: { type: "array", items: { type: "string" }, maxItems: 2 },
    note: { anyOf: [{ type: "string" }, { type: "null" }] },
    place: { $ref: "#/$defs/Place" },
  },
  required: ["name"],
  additionalProperties: false,
  $defs: { Place: { type: "object", properties: { x: { type: "number" } }, required: ["x"] } },
};

const wrong = (value: Json, schema = SCHEMA): string[] => misfits(value, schema).map(({ path }) => path);

describe("misfits (P3)", () => {
  it.each<[Json, string[]]>([
    [{ name: "a" }, []],
    [{ name: "a", times: 3, colour: "red", tags: ["x"], note: null, place: { x: 1 } }, []],
    [{}, ["name"]],
    [{ name: 1 }, ["name"]],
    [{ name: "" }, ["name"]],
    [{ name: "a", times: 1.5 }, ["times"]],
    [{ name: "a", times: 10 }, ["times"]],
    [{ name: "a", colour: "blue" }, ["colour"]],
    [{ name: "a", tags: ["x", 2, "z"] }, ["tags", "tags[1]"]],
    [{ name: "a", note: 5 }, ["note"]],
    [{ name: "a", place: {} }, ["place.x"]],
    [{ name: "a", place: { x: "1" } }, ["place.x"]],
    [{ name: "a", other: 1 }, ["other"]],
    [{ name: "a", constructor: 1 }, ["constructor"]],
    [[], [""]],
    [null, [""]],
  ])("%j: %j", (value, paths) => {
    expect(wrong(value)).toEqual(paths);
  });

  it("takes an integer for a number, and anything where nothing is said", () => {
    expect(wrong(1, { type: "number" })).toEqual([]);
    expect(wrong({ a: [1, "b"] }, {})).toEqual([]);
  });

  it("survives a schema that refers to itself", () => {
    const circle: Schema = { $ref: "#/$defs/A", $defs: { A: { $ref: "#/$defs/A" } } };
    expect(wrong({ a: 1 }, circle)).toEqual([]);
    const list: Schema = { type: "object", properties: { next: { $ref: "#" } } };
    expect(wrong({ next: { next: { next: 1 } } }, list)).toEqual(["next.next.next"]);
  });
});

describe("forms", () => {
  it("has a field for each property that it can hold", () => {
    const fields = fieldsOf({
      type: "object",
      properties: {
        name: { type: "string", title: "Name", description: "whose" },
        age: { type: "integer" },
        ok: { type: "boolean" },
        colour: { type: "string", enum: ["r", "g"], enumNames: ["red", "green"] },
        maybe: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
      },
      required: ["name", "ok"],
    });
    expect(fields?.map(({ kind }) => kind)).toEqual(["text", "integer", "boolean", "choice", "text"]);
    expect(fields?.[0]).toMatchObject({ label: "Name", help: "whose", required: true });
    expect(fields?.[3]?.choices[1]).toEqual({ value: "g", label: "green" });
    expect(startOf(fields ?? [], { age: 3 })).toEqual({ age: 3, ok: false });
  });

  it("has a field of JSON for what no other can hold, and lines for a list of texts", () => {
    const fields = fieldsOf({ type: "object", properties: { cc: { type: "array", items: { type: "string" } }, deep: { type: "object" }, any: {} } });
    expect(fields?.map(({ kind }) => kind)).toEqual(["list", "json", "json"]);
  });

  it("is none where there are no properties", () => {
    expect(fieldsOf({ type: "object" })).toBeNull();
  });
});
