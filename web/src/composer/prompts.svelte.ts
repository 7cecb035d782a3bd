/** What `/` offers in an empty message: one's own prompts, and those of MCP servers. */

import { fillPrompt } from "../api/calls";
import type { ServerPromptView } from "../api/generated";
import type { Prompt } from "../api/types";
import { catalog } from "../state/catalog.svelte";
import { attempt } from "../state/toasts.svelte";

export interface OfferedPrompt {
  /** As it is typed after the slash. */
  name: string;
  about: string;
  /** What stands in the message then; of a server's prompt, the server says it. */
  text: string | ServerPromptView;
}

export function offeredPrompts(own: Prompt[], served: ServerPromptView[], typed: string): OfferedPrompt[] {
  const offered = [
    ...own.map(({ name, text }) => ({ name, about: text, text })),
    ...served.map((prompt) => ({ name: `${prompt.server}:${prompt.name}`, about: prompt.description, text: prompt })),
  ];
  return offered.filter(({ name }) => name.toLowerCase().includes(typed));
}

/** What is offered for what was typed, and which one the keys have come to. */
export class PromptChoice {
  /** A server's prompt that has to be told something first. */
  asking = $state.raw<ServerPromptView | null>(null);

  constructor(
    private readonly text: () => string,
    private readonly write: (text: string) => void,
  ) {}

  private readonly typed = $derived.by(() => /^\/(\S*)$/.exec(this.text())?.[1]?.toLowerCase());
  /** Of what other words offer, the first: however they came there, by a key, an input method or the clipboard. */
  chosen = $derived.by(() => (void this.typed, 0));
  readonly looking = $derived(this.typed !== undefined);
  readonly offered = $derived(this.typed === undefined ? [] : offeredPrompts(catalog.prompts, catalog.serverPrompts, this.typed));
  /** That there are none at all is said, too. */
  readonly listed = $derived(this.looking && (this.offered.length > 0 || !(catalog.prompts.length + catalog.serverPrompts.length)));

  /** One's own at once; a server's when it has been asked for its text, with what it needs to know. */
  async choose({ text }: OfferedPrompt): Promise<void> {
    if (typeof text === "string") return this.write(text);
    if (text.required.length || text.optional.length) return void (this.asking = text);
    const filled = await attempt(() => fillPrompt(text.server, text.name, {}));
    if (filled) this.write(filled.text);
  }

  fill(text: string): void {
    this.asking = null;
    this.write(text);
  }

  /** True where the key is for the list. */
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
