/** Rules as they are listed: those of the settings with their place, then those that answers left behind. */

import { t } from "../i18n/words.svelte";

/** `dragoman.toml:4` is what is looked for; the folders before it are not. */
export const short = (origin: string): string => t().server(origin.replace(/^.*[\\/](?=[^\\/]+$)/, ""));
