/** About how many lines a text takes, before anybody has laid it out. */

const WIDE = 90; // characters in a line

export function linesOf(text: string): number {
  return text.split("\n").reduce((sum, line) => sum + Math.ceil(line.length / WIDE), 0);
}
