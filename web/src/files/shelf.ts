/** The interface of a file storage, and its metadata for each file. */

export interface Entry {
  name: string;
  path: string;
  folder: boolean;
  size: number;
}

/** A storage of bytes, addressed by a list of names. */
export interface Shelf {
  list(names: string[]): Promise<Entry[] | null>;
  read(names: string[]): Promise<Blob | null>;
  write(names: string[], data: Blob): Promise<void>;
  remove(names: string[]): Promise<void>;
}
