/** The path of the web UI: the root of its server, or a subpath at which a reverse proxy serves it. */

// After the build, this file is in assets/, one level below the web UI. As a source, it is in src/.
const home = new URL(/* @vite-ignore */ "..", import.meta.url);

/** "" or "/chat". */
export const basePath = home.protocol.startsWith("http") ? home.pathname.replace(/\/$/, "") : "";

/** A server path in the form in which the browser must request it. */
export const withBase = (path: string): string => basePath + path;
