/** A question in words: ours where the server's are its usual ones, else what it, a tool or a plugin wrote. */

import type { Kind, Question, Rule } from "../api/types";
import { t } from "../i18n/words.svelte";
import { inField, isComposing } from "../parts/keys";
import { visible } from "./visible";

/** What the server writes where nobody else has words for it (`turn/steps/ask.py`). */
const USUAL: Partial<Record<Kind, (tool: string) => string>> = {
  approve: (tool) => `May ${tool} run with these arguments?`,
  run: (tool) => `${tool} is ready: run it?`,
  loop: (tool) => `${tool} was already called with these arguments. Run it again?`,
  interrupted: (tool) => `The program stopped while ${tool} ran, so nobody knows how far it got. Run it again?`,
  review: (tool) => `May the model see this result of ${tool}?`,
};

export function inWords({ kind, tool, text, rules, diff, arguments: values }: Question): string {
  const asked = rules.length ? text.replace(/ \(always would mean: [^]*\)$/, "") : text; // the page has its own list of rules
  const usual = USUAL[kind]?.(tool);
  const rest = usual !== undefined && asked.startsWith(usual) ? asked.slice(usual.length) : null;
  if (rest === null) return visible((kind === "loop" ? t().server(asked) : asked) || t().asks[kind](tool));
  const plain = Object.keys(values).length === 0;
  const ours = kind !== "approve" ? t().asks[kind] : diff ? t().asksChange : plain ? t().asksPlain : t().asks.approve;
  return visible([ours(tool), rest.trim() && t().server(rest.trim())].join(" ").trim());
}

/** The letter that was typed, where it is not meant for a field or the browser. */
export function keyOf(event: KeyboardEvent): string | null {
  if (inField(event) || event.ctrlKey || event.metaKey || event.altKey || isComposing(event)) return null;
  return event.key.length === 1 ? event.key : null;
}

/** What a longer answer can be about: the question's own rules, or a wider one instead. */
export function offers({ rules, wider }: Question): Rule[][] {
  return rules.length ? [rules, ...wider.map((rule) => [rule])] : [];
}

export function rulesInWords(rules: Rule[]): string {
  return rules
    .map(({ permission, pattern }) => (pattern === "*" ? t().ruleAll(visible(permission)) : t().ruleFor(visible(permission), visible(pattern))))
    .join("; ");
}
