/** Searches for a prompt or a command by `/` in an empty message. */

import type { ConversationView } from "../state/conversation.svelte";
import type { Form, OfferedPrompt } from "./slash";

/** The suggestions for the typed text, and the one that is selected. */
export class PromptChoice {
  asking = $state.raw<Form | null>(null);
  /** Loaded when the user searches for one. */
  private slash = $state.raw<typeof import("./slash") | null>(null);

  constructor(
    private readonly text: () => string,
    private readonly write: (text: string) => void,
    private readonly view: () => ConversationView | null = () => null,
  ) {}

  private readonly typed = $derived.by(() => /^\/(\S*)$/.exec(this.text())?.[1]?.toLowerCase());
  /** When the typed text changes, select the first suggestion, whether the text came from a key, an input method or
   * the clipboard. */
  chosen = $derived.by(() => (void this.typed, 0));
  readonly looking = $derived(this.typed !== undefined);
  readonly offered = $derived.by(() => (this.typed === undefined ? [] : (this.slash?.offeredFor(this.typed, this.view()) ?? [])));

  async load(): Promise<void> {
    this.slash ??= (await import("./slash")) ?? null;
  }

  /** Use the user's own prompt immediately. A server's prompt is requested first, with the values of its arguments. */
  async choose(prompt: OfferedPrompt): Promise<void> {
    const { text } = prompt;
    if (typeof text === "function") return this.write(""), text();
    const form = this.slash?.formFor(prompt);
    if (form && form.required.length + form.optional.length) return void (this.asking = form);
    const filled = form ? await form.fill({}) : (text as string);
    if (filled !== undefined) this.write(filled);
  }

  fill(text: string): void {
    this.asking = null;
    this.write(text);
  }

  /** Return true if the list handles the key. */
  press(event: KeyboardEvent): boolean {
    const { length } = this.offered;
    const chosen = this.offered[this.chosen];
    if (!length || event.shiftKey) return false;
    if (event.key === "ArrowDown") this.chosen = (this.chosen + 1) % length;
    else if (event.key === "ArrowUp") this.chosen = (this.chosen - 1 + length) % length;
    else if ((event.key === "Enter" || event.key === "Tab") && chosen) void this.choose(chosen);
    else if (event.key === "Escape") this.write("");
    else return false;
    event.preventDefault();
    return true;
  }
}
