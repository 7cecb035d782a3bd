/** What of a question is folded, and opening it: nothing is allowed or released before all of it was opened (P14). */

import { getContext, setContext } from "svelte";
import { SvelteMap } from "svelte/reactivity";

interface Folded {
  /** Characters that are not shown. */
  size: number;
  open: () => void;
}

const KEY = Symbol("hidden");

export class Hidden {
  #parts = new SvelteMap<symbol, Folded>();

  /** Characters of what is asked about that nobody has opened. */
  get size(): number {
    return [...this.#parts.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** A part says that some of it is folded, until it is called off. */
  report(folded: Folded): () => void {
    const part = Symbol("part");
    this.#parts.set(part, folded);
    return () => this.#parts.delete(part);
  }

  /** Shows the next of every part: a text of a million characters comes in pieces. */
  open(): void {
    for (const { open } of [...this.#parts.values()]) open();
  }
}

/** For all that is shown inside the component that calls this. */
export const watchHidden = (): Hidden => setContext(KEY, new Hidden());

/** Tells the question around a folded part, where there is one, how much it hides; to be called while it is made. */
export function reportHidden(size: () => number, open: () => void): void {
  const hidden = getContext<Hidden | undefined>(KEY);
  if (hidden) $effect(() => (size() > 0 ? hidden.report({ size: size(), open }) : undefined));
}
