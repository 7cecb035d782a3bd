/** The words of the language chosen. Another language than English is loaded when it is needed. */

import { settings } from "../state/settings.svelte";
import { en, type Words } from "./en";

let loaded = $state.raw<Words>(en);

const wanted = (): "en" | "zh" => {
  if (settings.language !== "auto") return settings.language;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
};

export const t = (): Words => loaded;

export async function speak(): Promise<void> {
  const language = wanted();
  loaded = language === "zh" ? (await import("./zh")).zh : en;
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
}
