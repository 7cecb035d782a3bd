/** Limit how much of an arriving text is shown: each frame adds only as much as keeps the web UI responsive.
 *
 * No model writes fast enough to be delayed by this. Text that arrives in bulk, from a cache or after a pause of
 * the tab, is parsed within several frames instead of one long one. */

import { perFrame } from "../state/frame";

const STEP = 2500; // characters, some 20 ms of parsing
const LATEST = 40; // maximum number of frames until the backlog is shown
const TAIL = 8; // each step parses the open block again: the longer it is, the fewer the steps

export interface Pace {
  /** The text, or its first part. */
  readonly shown: string;
  readonly behind: boolean;
}

/** `tail`: the length of the block that still grows. */
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

/** A position that does not split a character. */
const whole = (text: string, place: number): number => (/[\uDC00-\uDFFF]/.test(text.charAt(place)) ? place + 1 : place);
