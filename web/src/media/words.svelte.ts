/** The texts about images and sound: loaded with the components that show them, not at startup. */

import { media as en, type MediaWords } from "../i18n/en/media";
import { t } from "../i18n/words.svelte";

let chinese = $state.raw<MediaWords | null>(null);
let asked = false;

export function m(): MediaWords {
  if (t().code !== "zh") return en;
  if (!asked) {
    asked = true;
    void import("../i18n/zh/media").then((loaded) => (chinese = loaded?.media ?? chinese));
  }
  return chinese ?? en;
}
