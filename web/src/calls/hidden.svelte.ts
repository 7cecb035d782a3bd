/** Tracks the folded parts of an approval request and opens them. All must be opened before anything is allowed or
 * released (P14). */

import { getContext, setContext } from "svelte";
import { SvelteMap } from "svelte/reactivity";

interface Folded {
  /** Number of characters that are not shown. */
  size: number;
  open: () => void;
}

const KEY = Symbol("hidden");

export class Hidden {
  #parts = new SvelteMap<symbol, Folded>();

  /** Number of characters of the approval request that were never opened. */
  get size(): number {
    return [...this.#parts.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Register a folded part. Returns a function that removes it. */
  report(folded: Folded): () => void {
    const part = Symbol("part");
    this.#parts.set(part, folded);
    return () => this.#parts.delete(part);
  }

  /** Show the next chunk of every part: a text of a million characters comes in chunks. */
  open(): void {
    for (const { open } of [...this.#parts.values()]) open();
  }
}

/** For everything that is shown inside the component that calls this. */
export const watchHidden = (): Hidden => setContext(KEY, new Hidden());

/** Report to the surrounding approval request, if any, how much a folded part hides. Call it while the component is
 * created. */
export function reportHidden(size: () => number, open: () => void): void {
  const hidden = getContext<Hidden | undefined>(KEY);
  if (hidden) $effect(() => (size() > 0 ? hidden.report({ size: size(), open }) : undefined));
}
