/** Show a Mermaid block as a diagram, with its source one click away. An invalid diagram stays a code block. */

import { t } from "../i18n/words.svelte";
import { drawSvg } from "./diagramFrame";

const LONGEST = 30_000;
/** Callbacks for a change between light and dark: an image contains its colours. */
const shown = new Map<HTMLImageElement, () => void>();

function isDark(): boolean {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

let watched = false;

function watchColours(): void {
  if (watched) return;
  watched = true;
  const again = (): void => {
    for (const [image, draw] of shown) {
      if (image.isConnected) draw();
      else shown.delete(image);
    }
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  new MutationObserver(again).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}

/** Use an image: it cannot run scripts, handle clicks or fetch anything. */
async function draw(image: HTMLImageElement, source: string): Promise<boolean> {
  const svg = await drawSvg(source, isDark()).catch(() => null);
  if (svg === null) return false;
  const { width, height } = svg;
  if (width && height) Object.assign(image, { width: Math.ceil(width), height: Math.ceil(height) });
  image.style.height = "auto";
  // Not decode(): it also fails if the browser merely cannot paint the image now.
  return new Promise((resolve) => {
    image.onload = () => resolve(true);
    image.onerror = () => resolve(false);
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg.text)}`;
  });
}

export async function showDiagram(pre: HTMLElement): Promise<void> {
  const source = pre.textContent ?? "";
  const bar = pre.previousElementSibling;
  if (!bar || bar.querySelector(".diagram-switch") || source.length > LONGEST) return;
  const image = document.createElement("img");
  image.className = "diagram";
  image.dataset.testid = "diagram";
  image.alt = `${t().diagram}: ${source.trim().split("\n", 1)[0] ?? ""}`;
  if (!(await draw(image, source)) || !pre.isConnected) return;
  const toggle = document.createElement("button");
  toggle.type = "button";
  toggle.className = "code-copy diagram-switch";
  toggle.dataset.testid = "diagram-switch";
  const show = (drawn: boolean): void => {
    image.hidden = !drawn;
    pre.hidden = drawn;
    toggle.textContent = drawn ? t().diagramSource : t().diagramDrawn;
  };
  toggle.addEventListener("click", () => show(image.hidden === true));
  const gap = document.createElement("span");
  gap.className = "grow";
  bar.firstElementChild?.after(gap, toggle);
  pre.before(image);
  show(true);
  shown.set(image, () => void draw(image, source));
  watchColours();
}
