/** Render a formula into its element. Loaded when the first formula is shown. */

import "katex/dist/katex.min.css";

import katex from "katex";

import { t } from "../i18n/words.svelte";

export function renderMath(element: HTMLElement): void {
  const tex = element.textContent ?? "";
  try {
    katex.render(tex, element, {
      displayMode: element.dataset.display === "true",
      throwOnError: true,
      strict: false,
      trust: false,
      maxExpand: 200,
      maxSize: 20,
    });
    if (element.dataset.display) element.tabIndex = 0; // a wide formula can also be scrolled with the keyboard
  } catch {
    element.textContent = tex;
    element.title = t().mathFailed;
    element.classList.add("math-raw");
  }
}
