/** The tree of a conversation's messages: children, versions, paths. Messages are ordered by arrival, which is their
 * age. */

import type { Message } from "../api/types";

export class Branches {
  private parents = new Map<string, string | null>();
  private below = new Map<string | null, string[]>();

  /** Return true if the tree grew. */
  add(id: string, parent: string | null): boolean {
    if (this.parents.has(id)) return false;
    this.parents.set(id, parent);
    const siblings = this.below.get(parent);
    if (siblings) siblings.push(id);
    else this.below.set(parent, [id]);
    return true;
  }

  has(id: string): boolean {
    return this.parents.has(id);
  }

  /** The message and its siblings, oldest first: the versions that ‹2/3› counts. */
  versions(id: string): string[] {
    return this.below.get(this.parents.get(id) ?? null) ?? [id];
  }

  /** The newest leaf below a message. */
  tip(id: string): string {
    for (;;) {
      const newest = this.below.get(id)?.at(-1);
      if (newest === undefined) return id;
      id = newest;
    }
  }

  newest(): string | null {
    const first = this.below.get(null)?.at(-1);
    return first === undefined ? null : this.tip(first);
  }

  /** From the first message to this one. */
  path(leaf: string | null): string[] {
    const path: string[] = [];
    for (let id = leaf; id !== null; id = this.parents.get(id) ?? null) {
      if (!this.parents.has(id)) break;
      path.push(id);
    }
    return path.reverse();
  }
}

/** One visual unit: a user's message, or an answer of one or more messages. */
export interface Block {
  key: string;
  kind: "said" | "answer";
  ids: string[];
}

export function blocks(path: string[], find: (id: string) => Pick<Message, "role" | "author"> | undefined): Block[] {
  const found: Block[] = [];
  for (const id of path) {
    const message = find(id);
    if (!message) continue;
    const kind = message.role === "user" && !message.author ? "said" : "answer";
    const last = found.at(-1);
    if (kind === "answer" && last?.kind === "answer") last.ids.push(id);
    else found.push({ key: id, kind, ids: [id] });
  }
  return found;
}
