/** Run work when the browser is idle: the newest first, a little at a time. */

import { flushSync } from "svelte";

const SLICE = 12; // milliseconds: the layout of what was rendered takes as long again

const queue: (() => void)[] = [];
let asked = false;

const idle: (work: (deadline: { timeRemaining: () => number }) => void) => void =
  typeof requestIdleCallback === "function"
    ? (work) => requestIdleCallback(work)
    : (work) => setTimeout(() => work({ timeRemaining: () => 8 }), 30);

function go(): void {
  idle((deadline) => {
    const until = performance.now() + SLICE;
    do flushSync(queue.pop()); // render the changes now, so that their time counts
    while (queue.length && deadline.timeRemaining() > 6 && performance.now() < until);
    asked = queue.length > 0;
    if (asked) go();
  });
}

/** Returns a function that cancels the work. */
export function whenIdle(work: () => void): () => void {
  queue.push(work);
  if (!asked) {
    asked = true;
    go();
  }
  return () => {
    const place = queue.indexOf(work);
    if (place >= 0) queue.splice(place, 1);
  };
}
