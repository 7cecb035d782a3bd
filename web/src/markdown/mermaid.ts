/** Draw Mermaid diagrams, inside their separate frame. */

import mermaid from "mermaid";

export interface Drawing {
  text: string;
  width: number;
  height: number;
}
export type Draw = (source: string, dark: boolean) => Promise<Drawing>;

let count = 0;

async function draw(source: string, dark: boolean): Promise<Drawing> {
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    class: { htmlLabels: false },
    journey: { textPlacement: "tspan" },
    layout: "dagre", // the other layouts are not included
    suppressErrorRendering: true,
    theme: dark ? "dark" : "neutral",
    themeVariables: { dropShadow: "none" }, // light shadows glow on a dark background
    fontFamily: "system-ui, sans-serif",
    // Settings that a diagram cannot change.
    secure: ["secure", "securityLevel", "startOnLoad", "maxTextSize", "maxEdges", "suppressErrorRendering", "htmlLabels", "themeCSS", "fontFamily", "layout"],
  });
  try {
    const { svg } = await mermaid.render(`diagram-${++count}`, source);
    const root = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
    if (!root) throw new Error("nothing was drawn");
    const [, , width = 0, height = 0] = (root.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
    root.setAttribute("width", String(width)); // "100%" has no meaning in an image
    root.setAttribute("height", String(height));
    return { text: new XMLSerializer().serializeToString(root), width, height };
  } finally {
    for (const left of document.querySelectorAll("body > :not(script)")) left.remove();
  }
}

Object.assign(globalThis, { draw });
