/** The shelf in the origin's private file system. It is missing over plain HTTP and in some browsers. */

import type { Entry, Shelf } from "./shelf";

const ROOT = "dragoman-files";

async function folder(root: FileSystemDirectoryHandle, names: string[], create: boolean): Promise<FileSystemDirectoryHandle | null> {
  let at = root;
  for (const name of names) {
    try {
      at = await at.getDirectoryHandle(name, { create });
    } catch (error) {
      if (create) throw error;
      return null;
    }
  }
  return at;
}

/** Null if this browser has no writable private file system. */
export async function privateFiles(): Promise<Shelf | null> {
  let root: FileSystemDirectoryHandle;
  try {
    if (!("createWritable" in FileSystemFileHandle.prototype)) return null;
    root = await (await navigator.storage.getDirectory()).getDirectoryHandle(ROOT, { create: true });
  } catch {
    return null;
  }
  return {
    async list(names) {
      const at = await folder(root, names, false);
      if (!at) return null;
      const entries: Entry[] = [];
      for await (const [name, handle] of at.entries()) {
        const size = handle.kind === "file" ? (await (handle as FileSystemFileHandle).getFile()).size : 0;
        entries.push({ name, path: [...names, name].join("/"), folder: handle.kind === "directory", size });
      }
      return entries;
    },
    async read(names) {
      const at = await folder(root, names.slice(0, -1), false);
      try {
        return at ? await (await at.getFileHandle(names.at(-1) as string)).getFile() : null;
      } catch {
        return null;
      }
    },
    async write(names, data) {
      const at = (await folder(root, names.slice(0, -1), true)) as FileSystemDirectoryHandle;
      const file = await at.getFileHandle(names.at(-1) as string, { create: true });
      const writer = await file.createWritable();
      await writer.write(data);
      await writer.close();
    },
    async remove(names) {
      const at = await folder(root, names.slice(0, -1), false);
      await at?.removeEntry(names.at(-1) as string, { recursive: true });
    },
  };
}
