/** Unsaved input of fields: it is restored when the field is shown again. */

import { SvelteMap, SvelteSet } from "svelte/reactivity";

const kept = new SvelteMap<string, string>();

/** The fields of one conversation. `put` parses a text and returns the action to run, or throws the reason if the
 * text is invalid. */
export class TypedFields {
  readonly problems = new SvelteMap<string, string>();
  readonly saved = new SvelteSet<string>();
  private changes: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly where: string,
    private readonly put: (name: string, text: string) => () => Promise<void>,
  ) {}

  /** The content of the field. */
  text(name: string, stored: string): string {
    return kept.get(this.key(name)) ?? stored;
  }

  get some(): boolean {
    return [...kept.keys()].some((key) => key.startsWith(`${this.where} `));
  }

  type(name: string, text: string): void {
    kept.set(this.key(name), text);
    this.saved.delete(name);
  }

  /** Save one after the other: each change starts from the result of the previous one. */
  async save(name: string, text: string): Promise<void> {
    this.type(name, text);
    try {
      const mine = this.changes.then(this.put(name, text));
      this.changes = mine.catch(() => undefined);
      await mine;
    } catch (error) {
      this.problems.set(name, error instanceof Error ? error.message : String(error));
      return;
    }
    this.problems.delete(name);
    if (kept.get(this.key(name)) !== text) return; // the user typed more meanwhile
    kept.delete(this.key(name));
    this.saved.add(name);
  }

  /** The fields are being closed: save what is valid. */
  saveAll(): void {
    for (const [key, text] of kept) if (key.startsWith(`${this.where} `)) void this.save(key.slice(this.where.length + 1), text);
  }

  /** Report the input that could not be saved last time, and why. */
  check(): void {
    for (const [key, text] of kept) {
      if (!key.startsWith(`${this.where} `)) continue;
      const name = key.slice(this.where.length + 1);
      try {
        this.put(name, text);
      } catch (error) {
        this.problems.set(name, (error as Error).message);
      }
    }
  }

  private key(name: string): string {
    return `${this.where} ${name}`;
  }
}
