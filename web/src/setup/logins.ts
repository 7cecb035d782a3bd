/** Sign-ins at MCP servers: the part of the web UI. */

import type { ServerLogin } from "./calls";

export const isUnderWay = (login: ServerLogin | null): boolean =>
  login !== null && ["starting", "waiting", "finishing"].includes(login.state);

/** The parameters of the callback address, in the format that the server expects. */
export function returned(search: string): Record<string, string> {
  const given = new URLSearchParams(search);
  const names = ["state", "code", "iss", "error", "error_description"];
  return Object.fromEntries(names.flatMap((name) => (given.has(name) ? [[name, given.get(name) ?? ""]] : [])));
}
