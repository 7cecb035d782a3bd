/** The sources under an answer: each once, with a link only if a browser can safely follow it. */

import type { TextPart } from "../api/types";

export interface Source {
  url: string | null;
  title: string;
}

export function sourcesOf(citations: TextPart["citations"]): Source[] {
  const sources = new Map<string, Source>();
  for (const { url, title } of citations) {
    const name = title || url;
    if (!name) continue;
    sources.set(`${url ?? ""} ${name}`, { url: url && /^https?:\/\//i.test(url) ? url : null, title: name });
  }
  return [...sources.values()];
}
