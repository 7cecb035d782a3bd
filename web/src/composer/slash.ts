/** What `/` offers in an empty message: the user's prompts, those of MCP servers, and commands. */

import { fillPrompt } from "../api/calls";
import type { ServerPromptView } from "../api/generated";
import type { Prompt } from "../api/types";
import { catalog } from "../state/catalog.svelte";
import type { ConversationView } from "../state/conversation.svelte";
import { attempt } from "../state/toasts.svelte";
import { commandsFor } from "./commands";

export interface OfferedPrompt {
  /** The text after the slash. */
  name: string;
  about: string;
  /** The text for the message. The server supplies the text of its prompts; a command acts instead. */
  text: string | ServerPromptView | (() => void);
}

/** A prompt with arguments that need values first. */
export interface Form {
  name: string;
  description: string;
  required: string[];
  optional: string[];
  fill: (values: Record<string, string>) => Promise<string | undefined>;
}

export function offeredFor(typed: string, view: ConversationView | null): OfferedPrompt[] {
  const offered = [
    ...catalog.prompts.map(({ name, text }) => ({ name, about: text, text })),
    ...catalog.serverPrompts.map((prompt) => ({ name: `${prompt.server}:${prompt.name}`, about: prompt.description, text: prompt })),
    ...commandsFor(view).map(({ name, about, run }) => ({ name, about, text: run })),
  ];
  const found = offered.filter(({ name }) => name.toLowerCase().includes(typed));
  const begins = ({ name }: OfferedPrompt): number => Number(name.toLowerCase().startsWith(typed));
  return found.sort((one, other) => begins(other) - begins(one));
}

const VARIABLE = /\{\{\s*([\p{L}\p{N}_-]+)\s*\}\}/gu;

/** Variables are written as {{name}}. Empty if the text has none. */
function formOf({ name, text }: Pick<Prompt, "name" | "text">): Form | null {
  const required = [...new Set([...text.matchAll(VARIABLE)].map(([, name]) => name ?? ""))];
  if (!required.length) return null;
  const fill = (values: Record<string, string>): Promise<string> => Promise.resolve(text.replace(VARIABLE, (_, name: string) => values[name] ?? ""));
  return { name, description: "", required, optional: [], fill };
}

async function fillServed({ server, name }: ServerPromptView, values: Record<string, string>): Promise<string | undefined> {
  return (await attempt(() => fillPrompt(server, name, values)))?.text;
}

/** The arguments that need a value first; empty if the text is ready. */
export function formFor({ name, text }: OfferedPrompt): Form | null {
  if (typeof text === "object") return { ...text, fill: (values) => fillServed(text, values) };
  return typeof text === "string" ? formOf({ name, text }) : null;
}
