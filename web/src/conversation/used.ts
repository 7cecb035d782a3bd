/** What an answer used, in the measures it is paid by. */

import type { Usage } from "../api/types";
import { count, duration, total } from "../i18n/format";
import { t } from "../i18n/words.svelte";

/** "" where nothing was counted. */
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
