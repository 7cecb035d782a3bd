/** What `/` offers in an empty message: one's own prompts, and those of MCP servers. */

import type { ServerPromptView } from "../api/generated";
import type { Prompt } from "../api/types";

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
