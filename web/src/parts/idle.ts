/** Work for when nothing else is to be done: the newest first, a little at a time. */

import { flushSync } from "svelte";

const SLICE = 12; // milliseconds: what was written is then laid out, which takes as long again

const queue: (() => void)[] = [];
let asked = false;

const idle: (work: (deadline: { timeRemaining: () => number }) => void) => void =
  typeof requestIdleCallback === "function"
    ? (work) => requestIdleCallback(work)
    : (work) => setTimeout(() => work({ timeRemaining: () => 8 }), 30);

function go(): void {
  idle((deadline) => {
    const until = performance.now() + SLICE;
    do flushSync(queue.pop()); // what it changes is written now, and counts
    while (queue.length && deadline.timeRemaining() > 6 && performance.now() < until);
    asked = queue.length > 0;
    if (asked) go();
  });
}

/** Returns what takes it back. */
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
