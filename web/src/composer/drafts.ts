/** What was written and not sent, by conversation: kept while one looks elsewhere. */

const PREFIX = "dragoman.draft.";

export const drafts = {
  get(key: string): string | null {
    try {
      return sessionStorage.getItem(PREFIX + key);
    } catch {
      return null;
    }
  },
  set(key: string, text: string): void {
    try {
      if (text) sessionStorage.setItem(PREFIX + key, text);
      else sessionStorage.removeItem(PREFIX + key);
    } catch {
      // storage is off or full: the draft lives as long as the field
    }
  },
  delete(key: string): void {
    drafts.set(key, "");
  },
};
