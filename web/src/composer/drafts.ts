/** Unsent messages by conversation, kept while the user is elsewhere. */

import type { ConversationChange } from "../api/generated";
import type { FilePart } from "../api/types";
import { basePath } from "../basePath";

/** Null removes a usual setting. */
export type Changes = NonNullable<ConversationChange["settings"]>;

const PREFIX = "dragoman.draft.";
/** Set when a user signs out: other tabs notice it, but not tabs of another server below the same address. */
export const LEFT = `dragoman.left${basePath}`;

/** Drafts that the storage did not take, because it is disabled or full. They exist until the web UI is closed, and
 * the browser asks before that. */
const unstored = new Map<string, string>();
addEventListener("beforeunload", (event) => void ((unstored.size || drafts.sending) && event.preventDefault()));

export const drafts = {
  /** Number of messages being sent: closing the web UI now can lose them. */
  sending: 0,
  /** Fields with uploads in progress: their draft can move to another key meanwhile. */
  fields: new Set<{ key: string }>(),
  get(key: string): string | null {
    try {
      return unstored.get(key) ?? sessionStorage.getItem(PREFIX + key);
    } catch {
      return null;
    }
  },
  set(key: string, text: string): void {
    unstored.delete(key);
    try {
      if (text) sessionStorage.setItem(PREFIX + key, text);
      else sessionStorage.removeItem(PREFIX + key);
    } catch {
      if (text) unstored.set(key, text);
    }
  },
  clear(): void {
    unstored.clear();
    sessionStorage.clear();
  },
  delete(key: string): void {
    drafts.set(key, "");
  },
  /** Files that the server already has: it keeps them for a day. */
  files(key: string): FilePart[] {
    try {
      return JSON.parse(drafts.get(`${key}.files`) ?? "[]") as FilePart[];
    } catch {
      return [];
    }
  },
  /** The choices for a conversation that has not begun, without its defaults. */
  plan(): Changes {
    return JSON.parse(drafts.get("plan") ?? "{}") as Changes;
  },
  setPlan(plan: Changes): void {
    const text = JSON.stringify(plan);
    drafts.set("plan", text === "{}" ? "" : text);
  },
  /** Move a draft from one key to another. */
  move(from: string, to: string): void {
    drafts.giveBack(to, drafts.get(from) ?? "", drafts.files(from));
    drafts.delete(from);
    drafts.setFiles(from, []);
    for (const field of drafts.fields) if (field.key === from) field.key = to;
  },
  /** Put text that could not be sent before what was written since. */
  giveBack(key: string, text: string, files: FilePart[]): void {
    drafts.set(key, [text, drafts.get(key)].filter(Boolean).join("\n"));
    const since = drafts.files(key).filter(({ blob }) => !files.some((file) => file.blob === blob));
    drafts.setFiles(key, [...files, ...since]);
  },
  setFiles(key: string, files: FilePart[]): void {
    drafts.set(`${key}.files`, files.length ? JSON.stringify(files) : "");
  },
};
