/** The text of an approval request: translated if the server sends a standard sentence, else as the server, a tool
 * or a plugin wrote it. */

import type { Json, JsonObject, Question, Rule, Said } from "../api/types";
import { saidIn, type Sentence } from "../i18n/format";
import { t } from "../i18n/words.svelte";
import { inField, isComposing } from "../parts/keys";
import { visible } from "./visible";

/** The values of a sentence with this code, or nothing if it has another code. */
const valuesOf = (sentence: Sentence | Json, code: string): JsonObject | false =>
  typeof sentence === "object" && (sentence as Said).code === code && (sentence as Said).values;

export function inWords(question: Question): string {
  const { kind, tool, diff, arguments: values } = question;
  const whole = saidIn(question, "text");
  const { asked } = valuesOf(whole, "question.always") || { asked: whole }; // the web UI shows a separate list of rules
  const { all } = valuesOf(asked as Sentence, "together") || { all: [asked] };
  const plain = Object.keys(values).length === 0;
  const ours = kind !== "approve" ? t().asks[kind] : diff ? t().asksChange : plain ? t().asksPlain : t().asks.approve;
  const said = (all as Sentence[]).map((one) => (valuesOf(one, `question.${kind}`) ? ours(tool) : t().server(one)));
  return visible(said.join(" ").trim() || t().asks[kind](tool));
}

/** The typed letter, unless it is meant for a field or the browser. */
export function keyOf(event: KeyboardEvent): string | null {
  if (inField(event) || event.ctrlKey || event.metaKey || event.altKey || isComposing(event)) return null;
  return event.key.length === 1 ? event.key : null;
}

/** The scope of a remembered answer: the approval request's rules, or a wider one instead. */
export function offers({ rules, wider }: Question): Rule[][] {
  return rules.length ? [rules, ...wider.map((rule) => [rule])] : [];
}

export function rulesInWords(rules: Rule[]): string {
  return rules
    .map(({ permission, pattern }) => (pattern === "*" ? t().ruleAll(visible(permission)) : t().ruleFor(visible(permission), visible(pattern))))
    .join("; ");
}
