/** The files of this browser, kept in its private file system, or in IndexedDB if that is missing. */

import { indexedFiles } from "./indexed";
import { privateFiles } from "./private";
import { fileNames, namesIn } from "./paths";
import type { Entry, Shelf } from "./shelf";

export type { Entry, Shelf };

export const QUOTA = 50_000_000;
export const READ_LIMIT = 1_000_000;

export class FilesRefused extends Error {
  override name = "FilesRefused";
}

export class BrowserFiles {
  constructor(private readonly shelf: Shelf) {}

  async list(path = ""): Promise<Entry[]> {
    const entries = await this.shelf.list(namesIn(path));
    if (entries === null) throw new FilesRefused(`there is no folder ${path}`);
    return entries.sort((a, b) => Number(b.folder) - Number(a.folder) || a.name.localeCompare(b.name));
  }

  /** Every file at any depth. */
  async all(path = ""): Promise<Entry[]> {
    const found: Entry[] = [];
    for (const entry of await this.list(path)) {
      if (entry.folder) found.push(...(await this.all(entry.path)));
      else found.push(entry);
    }
    return found;
  }

  async blob(path: string): Promise<Blob> {
    const data = await this.shelf.read(fileNames(path));
    if (data === null) throw new FilesRefused(`there is no file ${path}`);
    return data;
  }

  async read(path: string): Promise<string> {
    const data = await this.blob(path);
    if (data.size > READ_LIMIT) {
      throw new FilesRefused(`${path} has ${data.size} bytes; at most ${READ_LIMIT} can be read as text`);
    }
    return data.text();
  }

  async write(path: string, data: string | Blob): Promise<number> {
    const names = fileNames(path);
    const blob = typeof data === "string" ? new Blob([data]) : data;
    const before = (await this.shelf.read(names))?.size ?? 0;
    const used = await this.used();
    if (used - before + blob.size > QUOTA) {
      throw new FilesRefused(`there is no room for ${path}: all files together may have ${QUOTA} bytes`);
    }
    await this.shelf.write(names, blob);
    return blob.size;
  }

  async remove(path: string): Promise<void> {
    await this.shelf.remove(fileNames(path));
  }

  async used(): Promise<number> {
    return (await this.all()).reduce((sum, entry) => sum + entry.size, 0);
  }
}

let opened: Promise<BrowserFiles> | null = null;

export function browserFiles(): Promise<BrowserFiles> {
  opened ??= privateFiles()
    .then((shelf) => shelf ?? indexedFiles())
    .then((shelf) => new BrowserFiles(shelf));
  return opened;
}
