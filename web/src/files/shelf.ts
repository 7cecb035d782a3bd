/** What a place for files has to be able to do, and what it says of each. */

export interface Entry {
  name: string;
  path: string;
  folder: boolean;
  size: number;
}

/** Where bytes are kept, by a list of names. */
export interface Shelf {
  list(names: string[]): Promise<Entry[] | null>;
  read(names: string[]): Promise<Blob | null>;
  write(names: string[], data: Blob): Promise<void>;
  remove(names: string[]): Promise<void>;
}
