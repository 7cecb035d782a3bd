/** Files for a message: uploaded as soon as they are added. */

import * as api from "../api/calls";
import type { FilePart } from "../api/types";
import { size } from "../i18n/format";
import { t } from "../i18n/words.svelte";
import { app } from "../state/app.svelte";
import { catalog } from "../state/catalog.svelte";
import { attempt, tell } from "../state/toasts.svelte";
import { drafts } from "./drafts";

export interface Attached {
  id: number;
  name: string;
  type: string;
  size: number;
  part: FilePart | null;
}

let count = 0;

export class Attachments {
  items = $state<Attached[]>([]);
  /** Whether their field is no longer shown. */
  left = false;

  constructor(public key: string) {}

  readonly done = $derived(this.items.flatMap((item) => (item.part ? [$state.snapshot(item.part) as FilePart] : [])));
  readonly busy = $derived(this.items.some((item) => item.part === null));

  add(files: File[]): void {
    const limit = catalog.me?.limits?.upload ?? Infinity;
    for (const file of files) {
      if (file.size > limit) tell(t().tooLarge(file.name, size(limit)), "error");
      else void this.upload(file);
    }
  }

  /** Add a file that the server already has. */
  take(part: FilePart): void {
    this.items.push({ id: ++count, name: part.name ?? "file", type: part.media_type, size: part.size ?? 0, part });
  }

  remove(id: number): void {
    this.items = this.items.filter((item) => item.id !== id);
  }

  clear(): void {
    this.items = [];
  }

  /** The user has left the conversation: the draft keeps the file until they return. */
  private later(part: FilePart): void {
    drafts.giveBack(this.key, "", [part]);
    app.returned = this.key;
  }

  private async upload(file: File): Promise<void> {
    const id = ++count;
    this.items.push({ id, name: file.name || "file", type: file.type, size: file.size, part: null });
    drafts.fields.add(this);
    const part = await attempt(() => api.attach(file));
    const item = this.items.find((one) => one.id === id);
    if (part && item) item.part = part;
    else this.remove(id);
    if (!this.busy) drafts.fields.delete(this);
    if (part && item && this.left) this.later(part);
  }
}
