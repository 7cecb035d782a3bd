/** Unsent input in an approval request. It is restored after a navigation and after a reload. */

import type { Json, JsonObject } from "../api/types";
import { drafts } from "../composer/drafts";

const key = (question: string): string => `ask.${question}`;

function read(question: string): JsonObject {
  try {
    return JSON.parse(drafts.get(key(question)) ?? "{}") as JsonObject;
  } catch {
    return {};
  }
}

export class Kept {
  constructor(private readonly question: string) {}

  get<T extends Json>(field: string): T | undefined {
    return read(this.question)[field] as T | undefined;
  }

  /** Null, false and undefined need not be kept. */
  put(field: string, value: Json): void {
    const { [field]: _, ...rest } = read(this.question);
    const fields = value ? { ...rest, [field]: value } : rest;
    drafts.set(key(this.question), Object.keys(fields).length ? JSON.stringify(fields) : "");
  }
}

/** The approval request is answered. */
export const forget = (question: string): void => drafts.delete(key(question));
