/** What is loaded when it is wanted: undefined where it cannot be, since the server is away or has other files by now. */

export async function late<T>(wanted: Promise<T>): Promise<T | undefined> {
  return wanted;
}
