/** The options of image and speech models: kept in this browser, sent with each message. */

import type { JsonObject } from "../api/types";
import { keep, settings } from "../state/settings.svelte";

export const optionsOf = (model: string): JsonObject => ({ ...settings.options[model] });

export function keepOptions(model: string, options: JsonObject): void {
  const { [model]: _, ...others } = settings.options;
  keep({ options: Object.keys(options).length ? { ...others, [model]: options } : others });
}
