/** The texts of the chosen language. A language other than English is loaded when it is needed. */

import { late } from "../parts/late";
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
  loaded = language === "zh" ? ((await late(import("./zh")))?.zh ?? en) : en;
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
}
