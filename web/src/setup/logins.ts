/** Sign-ins at MCP servers, as far as the page has a part in them. */

import type { ServerLogin } from "./calls";

export const isUnderWay = (login: ServerLogin | null): boolean =>
  login !== null && ["starting", "waiting", "finishing"].includes(login.state);

/** What stands in the address that a browser came back to, as the server wants it. */
export function returned(search: string): Record<string, string> {
  const given = new URLSearchParams(search);
  const names = ["state", "code", "iss", "error", "error_description"];
  return Object.fromEntries(names.flatMap((name) => (given.has(name) ? [[name, given.get(name) ?? ""]] : [])));
}
