/** What was written and not sent, by conversation: kept while one looks elsewhere. */

import type { ConversationChange } from "../api/generated";
import type { FilePart } from "../api/types";
import { basePath } from "../basePath";

/** Null where what is usual is not wanted. */
export type Changes = NonNullable<ConversationChange["settings"]>;

const PREFIX = "dragoman.draft.";
/** Set where somebody signs out: other tabs hear of it, and not those of another server below the same address. */
export const LEFT = `dragoman.left${basePath}`;

/** What the storage did not take, because it is off or full: it stands here until the page is closed, which is asked about. */
const unstored = new Map<string, string>();
addEventListener("beforeunload", (event) => void ((unstored.size || drafts.sending) && event.preventDefault()));

export const drafts = {
  /** How many messages are on their way: who closes the page now may lose them. */
  sending: 0,
  /** For whom files are on their way: their draft may go on elsewhere meanwhile. */
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
  /** Files that the server has already: it keeps them for a day. */
  files(key: string): FilePart[] {
    try {
      return JSON.parse(drafts.get(`${key}.files`) ?? "[]") as FilePart[];
    } catch {
      return [];
    }
  },
  /** What was chosen for a conversation that has not begun, and not what it begins with anyway. */
  plan(): Changes {
    return JSON.parse(drafts.get("plan") ?? "{}") as Changes;
  },
  setPlan(plan: Changes): void {
    const text = JSON.stringify(plan);
    drafts.set("plan", text === "{}" ? "" : text);
  },
  /** What was begun in one place goes on in another. */
  move(from: string, to: string): void {
    drafts.giveBack(to, drafts.get(from) ?? "", drafts.files(from));
    drafts.delete(from);
    drafts.setFiles(from, []);
    for (const field of drafts.fields) if (field.key === from) field.key = to;
  },
  /** What could not be sent goes before what was written since. */
  giveBack(key: string, text: string, files: FilePart[]): void {
    drafts.set(key, [text, drafts.get(key)].filter(Boolean).join("\n"));
    const since = drafts.files(key).filter(({ blob }) => !files.some((file) => file.blob === blob));
    drafts.setFiles(key, [...files, ...since]);
  },
  setFiles(key: string, files: FilePart[]): void {
    drafts.set(`${key}.files`, files.length ? JSON.stringify(files) : "");
  },
};
