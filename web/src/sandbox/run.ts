/** Run a model's JavaScript and return its value and its output. Each run has a separate frame, which is then
 * removed. */

import { withBase } from "../basePath";
import type { BrowserFiles } from "../files/store";

export interface Outcome {
  failed: boolean;
  text: string;
}

interface Begun {
  type: "begun";
}
interface Asked {
  type: "files";
  id: number;
  what: string;
  rest: string[];
}
interface Done {
  type: "done";
  failed: boolean;
  text: string;
  lines: string[];
}

export const TIMEOUT = 5_000;
const LINES_LIMIT = 50_000;

/** The requests that the code can send to the web UI. */
export async function brokered(files: BrowserFiles, what: string, rest: string[]): Promise<unknown> {
  const [path = "", text = ""] = rest;
  if (what === "read") return files.read(path);
  if (what === "write") return files.write(path, text);
  if (what === "list") return (await files.list(path)).map(({ name, folder, size }) => ({ name, folder, size }));
  throw new Error(`files cannot ${what}`);
}

function told({ failed, text, lines }: Done): Outcome {
  const printed = lines.join("\n").slice(0, LINES_LIMIT);
  const value = text || (printed ? "" : failed ? "the code failed" : "the code ran, and gave no value");
  return { failed, text: [printed, value].filter(Boolean).join(printed && value ? "\n\n" : "") };
}

export function runJavaScript(code: string, files: BrowserFiles, timeout = TIMEOUT): Promise<Outcome> {
  return new Promise((resolve) => {
    const frame = document.createElement("iframe");
    const channel = new MessageChannel();
    let begun = false; // a frame that the server did not send runs nothing
    const finish = (outcome: Outcome): void => {
      clearTimeout(timer);
      channel.port1.close();
      frame.remove(); // terminates its Worker, whatever it is doing
      resolve(outcome);
    };
    const timer = setTimeout(
      () => finish({ failed: true, text: begun ? `the code was stopped after ${timeout / 1000} seconds` : "the code did not run: its sandbox could not be loaded" }),
      timeout,
    );
    channel.port1.onmessage = ({ data }: MessageEvent<Begun | Asked | Done>) => {
      if (data.type === "begun") return void (begun = true);
      if (data.type === "done") return finish(told(data));
      brokered(files, data.what, data.rest).then(
        (value) => channel.port1.postMessage({ id: data.id, value }),
        (error: unknown) => channel.port1.postMessage({ id: data.id, problem: String(error instanceof Error ? error.message : error) }),
      );
    };
    frame.setAttribute("sandbox", "allow-scripts");
    frame.style.display = "none";
    frame.title = "sandbox";
    frame.src = withBase("/sandbox");
    frame.addEventListener(
      "load",
      // Its origin is opaque, so no target origin matches. The port goes only to this frame's window.
      () => frame.contentWindow?.postMessage({ code }, "*", [channel.port2]),
      { once: true },
    );
    document.body.append(frame);
  });
}
