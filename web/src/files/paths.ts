/** Split a model's path into the names of its folders and file. A path that points outside is refused. */

export class PathRefused extends Error {
  override name = "PathRefused";
}

const LONGEST_NAME = 120;
const DEEPEST = 12;

export function namesIn(path: string): string[] {
  if (typeof path !== "string") throw new PathRefused("the path is not a text");
  if (/[\0-\x1f\x7f]/.test(path)) throw new PathRefused("the path holds a control character");
  if (path.includes("\\")) throw new PathRefused(`${path}: write / between names, not \\`);
  if (path.startsWith("/") || /^[a-z]:/i.test(path)) {
    throw new PathRefused(`${path}: paths begin at the root of the files in this browser, without a leading /`);
  }
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..")) throw new PathRefused(`${path}: .. is not allowed`);
  if (names.length > DEEPEST) throw new PathRefused(`${path}: at most ${DEEPEST} folders deep`);
  for (const name of names) {
    if (name.length > LONGEST_NAME) throw new PathRefused(`${name.slice(0, 20)}…: names have at most ${LONGEST_NAME} characters`);
  }
  return names;
}

/** The names in a file's path: at least one. */
export function fileNames(path: string): string[] {
  const names = namesIn(path);
  if (!names.length) throw new PathRefused("a file needs a name");
  return names;
}
