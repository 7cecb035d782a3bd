/** The usage of an answer, in the units that are billed. */

import type { Usage } from "../api/types";
import { count, duration, total } from "../i18n/format";
import { t } from "../i18n/words.svelte";

/** "" if nothing was counted. */
export function used(usage: Usage): string {
  return [
    total(usage) ? t().tokens(count(total(usage))) : "",
    usage.images ? t().usedPictures(usage.images) : "",
    usage.seconds ? t().usedSound(duration(usage.seconds)) : "",
    usage.characters ? t().usedCharacters(count(usage.characters)) : "",
  ]
    .filter(Boolean)
    .join(" · ");
}
