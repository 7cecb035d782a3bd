/** How much of a text that arrives is shown: in a frame only so much more that the page stays quick.
 *
 * No model writes so fast that this holds it up. What comes at once, from a cache or after a pause of the tab,
 * is read within some frames in place of one long one.
 */

import { perFrame } from "../state/frame";

const STEP = 2500; // characters, some 20 ms of reading
const LATEST = 40; // frames until what is behind is shown
const TAIL = 8; // what is open is read again with every step: the longer it is, the fewer they are

export interface Pace {
  /** The text, or its beginning. */
  readonly shown: string;
  readonly behind: boolean;
}

/** `tail`: how long the block is that still grows. */
export function paced(text: () => string, streaming: boolean, tail: () => number): Pace {
  let allowed = $state(streaming ? text().length + STEP : Infinity);
  const shown = $derived(text().length <= allowed ? text() : text().slice(0, whole(text(), allowed)));
  const raise = perFrame(() => {
    const step = Math.max(STEP, (text().length - shown.length) / LATEST, tail() / TAIL);
    allowed = shown.length + Math.ceil(step);
  });
  $effect(() => {
    if (text().length + STEP > allowed) raise();
  });
  return {
    get shown() {
      return shown;
    },
    get behind() {
      return shown.length < text().length;
    },
  };
}

/** A place that is not in the middle of a character. */
const whole = (text: string, place: number): number => (/[\uDC00-\uDFFF]/.test(text.charAt(place)) ? place + 1 : place);
