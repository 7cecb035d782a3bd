/** What a person wrote into a field of many lines. */

export const linesOf = (text: string): string[] => text.split("\n").map((line) => line.replace(/\r$/, "")).filter((line) => line.trim());

const NONE = "-";

/** The tools of an agent, each in a line; nothing is all there are, and a dash none at all. */
export const toolsText = (tools: string[] | null): string => (tools?.length === 0 ? NONE : (tools ?? []).join("\n"));

export function toolsOf(text: string): string[] | null {
  const named = linesOf(text).map((line) => line.trim());
  return named.length ? named.filter((name) => name !== NONE) : null;
}

/** NAME=TEXT, each in a line: a name of any characters. */
export function namedTexts(text: string): Record<string, string> {
  const pairs = linesOf(text).map((line) => {
    const place = line.indexOf("=");
    const [name, value] = [line.slice(0, place).trim(), line.slice(place + 1).trim()];
    if (place < 1 || !name || !value) throw new Error(line);
    return [name, value] as const;
  });
  return Object.fromEntries(pairs);
}

/** NAME=VALUE or NAME: VALUE, each in a line; the line that is neither is thrown. */
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
