/** Rules as they are listed: those of the settings with their place, then those that answers left behind. */

import { t } from "../i18n/words.svelte";

/** `dragoman.toml:4` is what is looked for; the folders before it are not. */
export const short = (origin: string): string => t().server(origin.replace(/^.*[\\/](?=[^\\/]+$)/, ""));

/** Whether a rule of this permission says anything about a tool's: `*` is any text, `?` one character. */
export function fits(rule: string, permission: string): boolean {
  const escaped = rule.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".");
  return new RegExp(`^${escaped}$`, "s").test(permission);
}
