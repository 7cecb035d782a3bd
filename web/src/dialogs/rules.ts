/** Rules in list order: those of the settings with their location, then those that answers created. */

import type { Rule } from "../api/types";
import { saidIn } from "../i18n/format";
import { t } from "../i18n/words.svelte";

/** The relevant part is `dragoman.toml:4`, without its folders. */
export const short = (rule: Rule): string => t().server(saidIn(rule, "origin")).replace(/^.*[\\/](?=[^\\/]+$)/, "");

/** Whether a rule with this permission applies to a tool's: `*` is any text, `?` one character. */
export function fits(rule: string, permission: string): boolean {
  const escaped = rule.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".");
  return new RegExp(`^${escaped}$`, "s").test(permission);
}
