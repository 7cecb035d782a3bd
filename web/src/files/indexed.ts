/** The shelf in IndexedDB: one row per file, keyed by its path. */

import type { Entry, Shelf } from "./shelf";

const STORE = "files";

function opened(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open("dragoman-files", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("this browser lets the page keep no files"));
  });
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the file could not be reached"));
  });
}

export async function indexedFiles(): Promise<Shelf> {
  const base = await opened();
  const store = (mode: IDBTransactionMode): IDBObjectStore => base.transaction(STORE, mode).objectStore(STORE);
  const below = (prefix: string): IDBKeyRange => IDBKeyRange.bound(prefix, `${prefix}\uffff`);
  return {
    async list(names) {
      const prefix = names.length ? `${names.join("/")}/` : "";
      const keys = (await done(store("readonly").getAllKeys(below(prefix)))) as string[];
      const blobs = (await done(store("readonly").getAll(below(prefix)))) as Blob[];
      if (!keys.length && names.length) return null;
      const entries = new Map<string, Entry>();
      keys.forEach((key, place) => {
        const [name = "", ...rest] = key.slice(prefix.length).split("/");
        const size = rest.length ? 0 : (blobs[place]?.size ?? 0);
        entries.set(name, { name, path: prefix + name, folder: rest.length > 0, size });
      });
      return [...entries.values()];
    },
    async read(names) {
      return ((await done(store("readonly").get(names.join("/")))) as Blob | undefined) ?? null;
    },
    async write(names, data) {
      await done(store("readwrite").put(data, names.join("/")));
    },
    async remove(names) {
      const path = names.join("/");
      await done(store("readwrite").delete(path));
      await done(store("readwrite").delete(below(`${path}/`)));
    },
  };
}
