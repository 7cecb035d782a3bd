/** Run a call of a browser tool and return its result. Nothing is thrown: a failure is a result. */

import type { JsonObject } from "../api/types";
import { browserFiles } from "../files/store";
import { isTool, type Tool } from "./names";
import { type Outcome, runJavaScript } from "./run";

const TOOLS: Record<Tool, (values: JsonObject) => Promise<Outcome>> = {
  async browser_js_eval(values) {
    return runJavaScript(String(values.code ?? ""), await browserFiles());
  },
  async list_directory(values) {
    const entries = await (await browserFiles()).list(String(values.path ?? ""));
    const lines = entries.map(({ name, folder, size }) => (folder ? `${name}/` : `${name} (${size} bytes)`));
    return { failed: false, text: lines.join("\n") || "the folder is empty" };
  },
  async read_file(values) {
    return { failed: false, text: await (await browserFiles()).read(String(values.path ?? "")) };
  },
  async write_file(values) {
    const path = String(values.path ?? "");
    const size = await (await browserFiles()).write(path, String(values.text ?? values.content ?? ""));
    return { failed: false, text: `wrote ${size} bytes to ${path}` };
  },
};

export async function runTool(name: string, values: JsonObject): Promise<Outcome> {
  if (!isTool(name)) return { failed: true, text: `this browser has no tool ${name}` };
  try {
    return await TOOLS[name](values);
  } catch (error) {
    return { failed: true, text: error instanceof Error ? error.message : String(error) };
  }
}
