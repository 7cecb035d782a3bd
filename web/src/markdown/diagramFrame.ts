/** The frame that draws diagrams. A model wrote them, and their styles and images could fetch from anywhere. */

import address from "./mermaid?worker&url";

import type { Drawing, Draw } from "./mermaid";

const POLICY = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'";

let frame: Promise<Draw> | null = null;

/** The frame needs a size so that its texts can be measured. Therefore it is rendered, but invisible. */
function openFrame(): Promise<Draw> {
  const element = document.createElement("iframe");
  element.srcdoc = `<!doctype html><meta http-equiv="Content-Security-Policy" content="${POLICY}"><body></body>`;
  element.tabIndex = -1;
  element.inert = true;
  element.title = "diagrams";
  element.ariaHidden = "true";
  element.style.cssText = "position:fixed;left:-2000px;top:0;width:1200px;height:900px;border:0;visibility:hidden";
  return new Promise((resolve, reject) => {
    element.addEventListener("load", () => {
      const inside = element.contentWindow as (Window & { draw?: Draw }) | null;
      const script = element.contentDocument?.createElement("script");
      const fail = (why: string): void => {
        element.remove();
        reject(new Error(why));
      };
      if (!inside || !script) return fail("no frame to draw in");
      script.type = "module";
      script.src = new URL(address, location.href).href;
      script.addEventListener("load", () => (inside.draw ? resolve(inside.draw) : fail("nothing to draw with")));
      script.addEventListener("error", () => fail("nothing to draw with"));
      element.contentDocument?.body.append(script);
    });
    document.body.append(element);
  });
}

let last: Promise<unknown> = Promise.resolve();

/** One at a time: Mermaid has global settings. */
export function drawSvg(source: string, dark: boolean): Promise<Drawing> {
  frame ??= openFrame().catch((reason: unknown) => {
    frame = null; // for the next diagram, the server can be reachable again
    throw reason;
  });
  const opened = frame;
  const drawing = last.then(async () => (await opened)(source, dark));
  last = drawing.catch(() => null);
  return drawing;
}
