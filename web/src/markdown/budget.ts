/** Limits the work for one text: unclosed brackets and nested lists are scanned again from each of their positions. */

const MOST = 100_000_000; // characters scanned: a second or two, more than any legitimate text needs
let spent = 0;

export function spend(signs: number): void {
  spent += signs;
  if (spent > MOST) throw new RangeError("this is too much work");
}

/** Null if the work exceeds the limit or the stack. */
export function bounded<T>(work: () => T): T | null {
  spent = 0;
  try {
    return work();
  } catch (error) {
    if (error instanceof RangeError || (error as Error).name === "InternalError") return null; // the latter in Firefox
    throw error;
  }
}
