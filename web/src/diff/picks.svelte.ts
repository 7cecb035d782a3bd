/** The hunks of a change that the user wants applied: all of them, until some are omitted or edited. */

import type { Kept } from "../calls/kept";

export class HunkPicks {
  private left = $state.raw<ReadonlySet<number>>(new Set());
  private texts = $state.raw<ReadonlyMap<number, string>>(new Map());

  constructor(
    readonly count: number,
    private readonly kept?: Kept,
  ) {
    this.left = new Set(kept?.get<number[]>("left"));
    this.texts = new Map(kept?.get<[number, string][]>("texts"));
  }

  get made(): number {
    return this.count - this.left.size;
  }

  /** Whether the change differs from the requested one. */
  get other(): boolean {
    return this.left.size > 0 || this.texts.size > 0;
  }

  has(hunk: number): boolean {
    return !this.left.has(hunk);
  }

  text(hunk: number): string | null {
    return this.texts.get(hunk) ?? null;
  }

  turn(hunk: number, on: boolean): void {
    const left = new Set(this.left);
    if (on) left.delete(hunk);
    else left.add(hunk);
    this.left = left;
    this.kept?.put("left", left.size ? [...left] : null);
  }

  /** Another text for the hunk; null: the original one. */
  write(hunk: number, text: string | null): void {
    const texts = new Map(this.texts);
    if (text === null) texts.delete(hunk);
    else texts.set(hunk, text);
    this.texts = texts;
    this.kept?.put("texts", texts.size ? [...texts] : null);
  }

  chosen(): { hunk: number; text: string | null }[] {
    const all = Array.from({ length: this.count }, (_, hunk) => hunk);
    return all.filter((hunk) => this.has(hunk)).map((hunk) => ({ hunk, text: this.text(hunk) }));
  }
}
