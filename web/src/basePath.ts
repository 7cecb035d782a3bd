/** Where the page is: at the root of its server, or below a path at which a reverse proxy shows it. */

// Built, this file is in assets/, and so one below the page; as a source it is in src/.
const home = new URL(/* @vite-ignore */ "..", import.meta.url);

/** "" or "/chat". */
export const basePath = home.protocol.startsWith("http") ? home.pathname.replace(/\/$/, "") : "";

/** A path of the server, as the browser has to ask for it. */
export const withBase = (path: string): string => basePath + path;
