/** Convert code to highlighted HTML. Loaded when the first code block is shown. */

import hljs from "highlight.js/lib/common";

export function highlight(code: string, language: string): string | null {
  if (!hljs.getLanguage(language)) return null;
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}
