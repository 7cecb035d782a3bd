/** Which texts can be previewed, by file extension or by the language of a block. */

export type Kind = "html" | "svg" | "markdown" | "csv" | "json" | "mermaid" | "image" | "pdf";

const ENDINGS: Record<string, Kind> = {
  html: "html",
  htm: "html",
  svg: "svg",
  md: "markdown",
  markdown: "markdown",
  csv: "csv",
  json: "json",
  mmd: "mermaid",
  mermaid: "mermaid",
};

export const kindOfName = (name: string): Kind | null => ENDINGS[/\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? ""] ?? null;
export const kindOfLanguage = (language: string): Kind | null => ENDINGS[language.toLowerCase()] ?? null;
