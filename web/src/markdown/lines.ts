/** Estimate how many lines a text takes before it is rendered. */

const WIDE = 90; // characters in a line

export function linesOf(text: string): number {
  return text.split("\n").reduce((sum, line) => sum + Math.ceil(line.length / WIDE), 0);
}
