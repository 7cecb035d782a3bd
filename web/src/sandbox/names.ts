/** The names of the tools that run in the browser, as in their group. */

const NAMES = ["browser_js_eval", "list_directory", "read_file", "write_file"] as const;

export type Tool = (typeof NAMES)[number];

export const isTool = (name: string): name is Tool => (NAMES as readonly string[]).includes(name);
