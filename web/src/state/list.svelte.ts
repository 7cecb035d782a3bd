/** The user's conversations: searched by the server, updated by the stream. */

import { SvelteMap } from "svelte/reactivity";

import * as api from "../api/calls";
import type { Summary } from "../api/types";

class ConversationList {
  readonly known = new SvelteMap<string, Summary>();
  search = $state("");
  /** The filter when there is no search: all conversations outside the archive, the archived ones, or those with a
   * tag. */
  filter = $state.raw<api.ListFilter>({});
  tags = $state.raw<string[]>([]);
  loaded = $state(false);
  private found = $state.raw<string[] | null>(null);
  private next = $state.raw<string | null>(null);
  private asked: AbortController | null = null;
  /** Deleted here, and still undoable for a while. */
  readonly hidden = new SvelteMap<string, true>();

  /** Newest first; with a search, in the server's order. */
  readonly shown = $derived.by(() => {
    const all =
      this.found === null
        ? [...this.known.values()].sort((a, b) => b.updated - a.updated)
        : this.found.flatMap((id) => this.known.get(id) ?? []);
    return all.filter((item) => !this.hidden.has(item.id) && (this.found !== null || item.parent === null) && this.passes(item));
  });

  private passes(item: Summary): boolean {
    if (this.search.trim()) return true;
    const { archived = false, tag } = this.filter;
    return item.archived === archived && (!tag || item.tags.includes(tag));
  }

  readonly more = $derived(this.next !== null);

  childrenOf(id: string): Summary[] {
    return [...this.known.values()]
      .filter((item) => item.parent?.conversation === id && !this.hidden.has(item.id))
      .sort((a, b) => a.created - b.created);
  }

  /** The number of approval requests in a conversation and those below it. */
  waiting(item: Summary): number {
    return this.childrenOf(item.id).reduce((sum, child) => sum + this.waiting(child), item.waiting);
  }

  async load(): Promise<void> {
    this.asked?.abort();
    const asked = (this.asked = new AbortController());
    const search = this.search.trim();
    const before = new Map(this.known);
    const untold = ({ id }: Summary): boolean => this.known.get(id) === before.get(id); // unchanged since the request
    try {
      const plain = !search && !this.filter.archived && !this.filter.tag;
      const page = await api.conversations(search, null, this.filter, asked.signal);
      const pinned = plain ? (await api.conversations("", null, { pinned: true }, asked.signal)).items : [];
      if (asked.signal.aborted) return;
      for (const item of [...pinned, ...page.items]) {
        const known = this.known.get(item.id);
        if (untold(item)) this.known.set(item.id, item);
        else if (known) {
          // A snapshot omits the role, so only a role that changed since is new.
          const told = known.role !== before.get(item.id)?.role ? known.role : null;
          this.known.set(item.id, { ...known, snippet: item.snippet, found: item.found, role: told ?? item.role });
        }
      }
      if (!search) this.tags = page.tags ?? [];
      if (plain) {
        const ids = new Set(page.items.map((item) => item.id));
        const oldest = page.next === null ? -Infinity : (page.items.at(-1)?.updated ?? -Infinity);
        for (const item of this.known.values()) {
          if (!ids.has(item.id) && item.parent === null && item.updated > oldest && !item.archived && untold(item)) this.known.delete(item.id);
        }
      }
      this.found = search ? page.items.map((item) => item.id) : null;
      this.next = page.next;
      this.loaded = true;
    } catch (error) {
      if (!asked.signal.aborted) throw error;
    }
  }

  async turnTo(filter: api.ListFilter): Promise<void> {
    this.filter = filter;
    await this.load();
  }

  async loadMore(): Promise<void> {
    if (this.next === null) return;
    const search = this.search.trim();
    const { asked } = this;
    const page = await api.conversations(search, this.next, this.filter);
    if (this.asked !== asked) return; // another list is shown by now
    for (const item of page.items) this.known.set(item.id, item);
    if (this.found !== null) this.found = [...new Set([...this.found, ...page.items.map((item) => item.id)])];
    this.next = page.next;
  }

  /** Keep the search results, and your role, which a snapshot omits. */
  put(item: Summary): void {
    const { snippet, found, role } = this.known.get(item.id) ?? item;
    this.known.set(item.id, { ...item, snippet, found, role: item.role ?? role });
  }

  drop(id: string): void {
    this.known.delete(id);
    this.hidden.delete(id);
  }
}

export const list = new ConversationList();

/** The tags in a text, separated by commas. */
export const tagsIn = (text: string): string[] => text.split(/[,，]/).map((tag) => tag.trim()).filter(Boolean);
