/** Validate a value against a JSON schema. Supports only the part of JSON Schema that tools use. */

import type { Json, JsonObject, Schema } from "../api/types";
import { t } from "../i18n/words.svelte";

export interface Misfit {
  path: string;
  text: string;
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const asSchema = (value: Json | undefined): Schema | null => (isObject(value) ? value : null);

/** Follow a $ref within the same schema. A cycle or a foreign address counts as "anything". */
export function resolved(schema: Schema, root: Schema): Schema {
  let found = schema;
  for (let depth = 0; typeof found.$ref === "string" && depth < 20; depth++) {
    let target: Json | undefined = root;
    for (const key of found.$ref.replace(/^#\/?/, "").split("/").filter(Boolean)) {
      const name = key.replaceAll("~1", "/").replaceAll("~0", "~");
      target = isObject(target) ? target[name] : undefined;
    }
    const next = asSchema(target);
    if (!next) return {};
    const { $ref: _, ...rest } = found;
    found = { ...next, ...rest };
  }
  return typeof found.$ref === "string" ? {} : found;
}

function typeOf(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

export const typesOf = (schema: Schema): string[] =>
  typeof schema.type === "string" ? [schema.type] : Array.isArray(schema.type) ? schema.type.map(String) : [];

const same = (one: Json, other: Json): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Whether two objects are equal, in any key order. */
export function agree(one: Json | undefined, other: Json | undefined): boolean {
  if (!isObject(one) || !isObject(other)) {
    if (!Array.isArray(one) || !Array.isArray(other)) return one === other;
    return one.length === other.length && one.every((item, at) => agree(item, other[at]));
  }
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => Object.hasOwn(other, name) && agree(one[name], other[name]));
}

const inside = (path: string, key: string | number): string =>
  typeof key === "number" ? `${path}[${key}]` : path ? `${path}.${key}` : key;

export function misfits(value: Json, schema: Schema, root: Schema = schema, path = "", depth = 0): Misfit[] {
  if (depth > 40) return [];
  const found: Misfit[] = [];
  const wrong = (text: string, at = path): void => void found.push({ path: at, text });
  const rules = resolved(schema, root);
  const types = typesOf(rules);
  const type = typeOf(value);
  if (types.length && !types.includes(type) && !(type === "integer" && types.includes("number"))) {
    wrong(t().wantsType(types.join(" | ")));
    return found;
  }
  if (Array.isArray(rules.enum) && !rules.enum.some((choice) => same(choice, value))) {
    wrong(t().wantsOneOf(rules.enum.map((choice) => JSON.stringify(choice)).join(", ")));
  }
  if (rules.const !== undefined && !same(rules.const, value)) wrong(t().wantsOneOf(JSON.stringify(rules.const)));
  if (typeof value === "string") {
    const length = [...value].length;
    if (typeof rules.minLength === "number" && length < rules.minLength) wrong(t().wantsLength(rules.minLength));
    if (typeof rules.maxLength === "number" && length > rules.maxLength) wrong(t().wantsShorter(rules.maxLength));
    if (typeof rules.pattern === "string" && !matches(rules.pattern, value)) wrong(t().wantsPattern(rules.pattern));
  } else if (typeof value === "number") {
    if (typeof rules.minimum === "number" && value < rules.minimum) wrong(t().wantsAtLeast(rules.minimum));
    if (typeof rules.maximum === "number" && value > rules.maximum) wrong(t().wantsAtMost(rules.maximum));
  } else if (Array.isArray(value)) {
    if (typeof rules.minItems === "number" && value.length < rules.minItems) wrong(t().wantsItems(rules.minItems));
    if (typeof rules.maxItems === "number" && value.length > rules.maxItems) wrong(t().wantsFewer(rules.maxItems));
    const items = asSchema(rules.items);
    if (items) value.forEach((item, at) => found.push(...misfits(item, items, root, inside(path, at), depth + 1)));
  } else if (isObject(value)) {
    found.push(...objectMisfits(value, rules, root, path, depth));
  }
  found.push(...combinedMisfits(value, rules, root, path, depth));
  return found;
}

function objectMisfits(value: JsonObject, rules: Schema, root: Schema, path: string, depth: number): Misfit[] {
  const found: Misfit[] = [];
  const properties = asSchema(rules.properties) ?? {};
  for (const key of Array.isArray(rules.required) ? rules.required.map(String) : []) {
    if (!Object.hasOwn(value, key)) found.push({ path: inside(path, key), text: t().isRequired });
  }
  for (const [key, item] of Object.entries(value)) {
    const known = Object.hasOwn(properties, key) ? asSchema(properties[key]) : null;
    if (known) found.push(...misfits(item, known, root, inside(path, key), depth + 1));
    else if (!Object.hasOwn(properties, key)) {
      const others = asSchema(rules.additionalProperties);
      if (rules.additionalProperties === false && !rules.patternProperties) {
        found.push({ path: inside(path, key), text: t().isUnknown });
      } else if (others) found.push(...misfits(item, others, root, inside(path, key), depth + 1));
    }
  }
  return found;
}

/** Report the errors of the closest alternative. */
function combinedMisfits(value: Json, rules: Schema, root: Schema, path: string, depth: number): Misfit[] {
  const found: Misfit[] = [];
  const each = (key: "allOf" | "anyOf" | "oneOf"): Misfit[][] =>
    (Array.isArray(rules[key]) ? rules[key] : []).flatMap((choice) =>
      isObject(choice) ? [misfits(value, choice, root, path, depth + 1)] : [],
    );
  found.push(...each("allOf").flat());
  for (const key of ["anyOf", "oneOf"] as const) {
    const choices = each(key);
    if (choices.length && choices.every((choice) => choice.length)) {
      found.push(...choices.reduce((best, choice) => (deep(choice) > deep(best) ? choice : best)));
    }
  }
  return found;
}

const deep = (choice: Misfit[]): number => Math.max(...choice.map((misfit) => misfit.path.length));

function matches(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true; // a pattern of another regex dialect: the server checks it
  }
}
