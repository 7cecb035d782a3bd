/** Load code on demand. The result is undefined if it cannot be loaded, because the server is unreachable or has
 * other files by now. */

export async function late<T>(wanted: Promise<T>): Promise<T | undefined> {
  return wanted;
}
