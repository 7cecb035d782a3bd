/** Turn a schema into the fields of a form. There are none if a form cannot represent every value. */

import type { Json, JsonObject, Schema } from "../api/types";
import { isObject, resolved, typesOf } from "./schema";

export interface Field {
  name: string;
  label: string;
  help: string;
  required: boolean;
  /** `list`: strings, one per line; `json`: what no other field can represent. */
  kind: "text" | "number" | "integer" | "boolean" | "choice" | "list" | "json";
  choices: { value: Json; label: string }[];
  start: Json | undefined;
  format: string;
}

/** `{"anyOf": [X, {"type": "null"}]}` is a common way to write "X or nothing". */
function unwrapped(schema: Schema, root: Schema): Schema {
  const rules = resolved(schema, root);
  const choices = Array.isArray(rules.anyOf) ? rules.anyOf.filter(isObject) : [];
  const real = choices.filter((choice) => choice.type !== "null");
  const [only] = real;
  return only && real.length === 1 && choices.length === 2 ? { ...resolved(only, root), ...omit(rules, "anyOf") } : rules;
}

function omit(rules: Schema, key: string): Schema {
  const { [key]: _, ...rest } = rules;
  return rest;
}

function choicesOf(rules: Schema): { value: Json; label: string }[] {
  if (Array.isArray(rules.enum)) {
    const names = Array.isArray(rules.enumNames) ? rules.enumNames : [];
    return rules.enum.map((value, place) => ({ value, label: String(names[place] ?? value) }));
  }
  const titled = [rules.oneOf, rules.anyOf].find(Array.isArray) ?? [];
  const found = titled.filter(isObject).filter((choice) => choice.const !== undefined);
  if (!found.length || found.length !== titled.length) return [];
  return found.map((choice) => ({ value: choice.const as Json, label: String(choice.title ?? choice.const) }));
}

function isListOfTexts(rules: Schema, root: Schema): boolean {
  return isObject(rules.items) && typesOf(resolved(rules.items, root)).join() === "string" && !choicesOf(resolved(rules.items, root)).length;
}

function field(name: string, schema: Schema, root: Schema, required: boolean): Field {
  const rules = unwrapped(schema, root);
  const types = typesOf(rules).filter((type) => type !== "null");
  const choices = choicesOf(rules);
  const kinds: Record<string, Field["kind"]> = { string: "text", number: "number", integer: "integer", boolean: "boolean" };
  const only = types.length === 1 ? types[0] : undefined;
  const list = only === "array" && isListOfTexts(rules, root);
  const kind = choices.length ? "choice" : list ? "list" : ((only ? kinds[only] : undefined) ?? "json");
  const text = (value: Json | undefined): string => (typeof value === "string" ? value : "");
  return {
    name,
    label: text(rules.title) || name,
    help: text(rules.description),
    required,
    kind,
    choices,
    start: rules.default,
    format: text(rules.format),
  };
}

export function fieldsOf(schema: Schema): Field[] | null {
  const rules = resolved(schema, schema);
  if (!isObject(rules.properties)) return null;
  const required = new Set(Array.isArray(rules.required) ? rules.required.map(String) : []);
  const fields: Field[] = [];
  for (const [name, property] of Object.entries(rules.properties)) {
    fields.push(field(name, isObject(property) ? property : {}, schema, required.has(name)));
  }
  return fields.length ? fields : null;
}

/** The initial content of a form: the given values, then the schema's defaults. */
export function startOf(fields: Field[], given: JsonObject): JsonObject {
  const values: JsonObject = { ...given };
  for (const { name, start, kind, required } of fields) {
    if (values[name] !== undefined) continue;
    if (start !== undefined && start !== null) values[name] = start;
    else if (kind === "boolean" && required) values[name] = false;
  }
  return values;
}
