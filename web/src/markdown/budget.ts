/** How much work a text may be: brackets that nobody closes, and lists in lists, are read anew from each of them. */

const MOST = 100_000_000; // signs that are looked at: a second or two, more than any honest text takes
let spent = 0;

export function spend(signs: number): void {
  spent += signs;
  if (spent > MOST) throw new RangeError("this is too much work");
}

/** Null where it is too much, or goes deeper than the stack. */
export function bounded<T>(work: () => T): T | null {
  spent = 0;
  try {
    return work();
  } catch (error) {
    if (error instanceof RangeError || (error as Error).name === "InternalError") return null; // the latter in Firefox
    throw error;
  }
}
