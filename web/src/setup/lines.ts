/** Parse the user's text in a multi-line field. */

export const linesOf = (text: string): string[] => text.split("\n").map((line) => line.replace(/\r$/, "")).filter((line) => line.trim());

const NONE = "-";

/** The tools of an agent, one per line. An empty text means all tools, and a dash means none. */
export const toolsText = (tools: string[] | null): string => (tools?.length === 0 ? NONE : (tools ?? []).join("\n"));

export function toolsOf(text: string): string[] | null {
  const named = linesOf(text).map((line) => line.trim());
  return named.length ? named.filter((name) => name !== NONE) : null;
}

/** NAME=TEXT, one per line. A name can contain any characters. */
export function namedTexts(text: string): Record<string, string> {
  const pairs = linesOf(text).map((line) => {
    const place = line.indexOf("=");
    const [name, value] = [line.slice(0, place).trim(), line.slice(place + 1).trim()];
    if (place < 1 || !name || !value) throw new Error(line);
    return [name, value] as const;
  });
  return Object.fromEntries(pairs);
}

/** NAME=VALUE or NAME: VALUE, one per line. Throws a line that has neither form. */
export function pairsOf(text: string, mark: "=" | ":"): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const line of linesOf(text)) {
    const place = line.indexOf(mark);
    const name = line.slice(0, place).trim();
    if (place < 1 || !/^[A-Za-z_][\w-]*$/.test(name)) throw new Error(line);
    pairs[name] = mark === "=" ? line.slice(place + 1) : line.slice(place + 1).trim();
  }
  return pairs;
}
