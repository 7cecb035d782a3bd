/** The task list that a model keeps with the `todo` tool: the newest visible one. */

import type { Json, Message } from "../api/types";

export interface Task {
  text: string;
  state: "open" | "doing" | "done";
}

const STATES = ["open", "doing", "done"];

function isTask(item: Json): boolean {
  if (typeof item !== "object" || item === null || Array.isArray(item)) return false;
  return typeof item.text === "string" && STATES.includes(String(item.state));
}

export function tasksOf(messages: (Message | undefined)[]): Task[] {
  for (const message of messages.toReversed()) {
    for (const part of (message?.parts ?? []).toReversed()) {
      const items = part.type === "call" && part.tool === "todo" ? part.result?.metadata?.items : undefined;
      if (Array.isArray(items) && items.every(isTask)) return items as unknown as Task[];
    }
  }
  return [];
}
