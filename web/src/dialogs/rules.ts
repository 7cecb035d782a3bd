/** Rules as they are listed: those of the settings with their place, then those that answers left behind. */

import type { Rule } from "../api/types";
import { saidIn } from "../i18n/format";
import { t } from "../i18n/words.svelte";

/** `dragoman.toml:4` is what is looked for; the folders before it are not. */
export const short = (rule: Rule): string => t().server(saidIn(rule, "origin")).replace(/^.*[\\/](?=[^\\/]+$)/, "");

/** Whether a rule of this permission says anything about a tool's: `*` is any text, `?` one character. */
export function fits(rule: string, permission: string): boolean {
  const escaped = rule.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".");
  return new RegExp(`^${escaped}$`, "s").test(permission);
}
