/** Draws Mermaid's diagrams, in the frame that is theirs alone. */

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
    layout: "dagre", // the others are not in this page
    suppressErrorRendering: true,
    theme: dark ? "dark" : "neutral",
    themeVariables: { dropShadow: "none" }, // light ones glow in the dark
    fontFamily: "system-ui, sans-serif",
    // What a diagram may not set by itself.
    secure: ["secure", "securityLevel", "startOnLoad", "maxTextSize", "maxEdges", "suppressErrorRendering", "htmlLabels", "themeCSS", "fontFamily", "layout"],
  });
  try {
    const { svg } = await mermaid.render(`diagram-${++count}`, source);
    const root = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
    if (!root) throw new Error("nothing was drawn");
    const [, , width = 0, height = 0] = (root.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
    root.setAttribute("width", String(width)); // "100%" says nothing in an image
    root.setAttribute("height", String(height));
    return { text: new XMLSerializer().serializeToString(root), width, height };
  } finally {
    for (const left of document.querySelectorAll("body > :not(script)")) left.remove();
  }
}

Object.assign(globalThis, { draw });
