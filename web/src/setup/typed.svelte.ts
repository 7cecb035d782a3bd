/** What was typed into a field and not saved: it stands there again when the field is shown the next time. */

import { SvelteMap, SvelteSet } from "svelte/reactivity";

const kept = new SvelteMap<string, string>();

/** The fields of one conversation. `put` reads a text and says what is to be done with it, or throws why it cannot be. */
export class TypedFields {
  readonly problems = new SvelteMap<string, string>();
  readonly saved = new SvelteSet<string>();
  private changes: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly where: string,
    private readonly put: (name: string, text: string) => () => Promise<void>,
  ) {}

  /** What stands in it. */
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

  /** One after the other: each begins with what the one before left. */
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
    if (kept.get(this.key(name)) !== text) return; // more was typed meanwhile
    kept.delete(this.key(name));
    this.saved.add(name);
  }

  /** They go away: what can be saved is. */
  saveAll(): void {
    for (const [key, text] of kept) if (key.startsWith(`${this.where} `)) void this.save(key.slice(this.where.length + 1), text);
  }

  /** What could not be saved the last time, and why. */
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
