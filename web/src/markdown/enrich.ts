/** Add to a rendered block what plain HTML lacks: colours, formulas, copy buttons, images on request. */

import { t } from "../i18n/words.svelte";
import { copyText } from "../parts/clipboard";
import { settings } from "../state/settings.svelte";
import { late } from "../parts/late";
import { whenNear } from "../parts/near";
import { kindOfLanguage } from "../preview/languages";

const HIGHLIGHT_LIMIT = 60_000;

function button(label: string, className: string, onclick: () => void): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.className = className;
  made.textContent = label;
  made.addEventListener("click", onclick);
  return made;
}

function codeBlock(pre: HTMLPreElement): void {
  const code = pre.querySelector("code");
  if (!code || pre.parentElement?.classList.contains("code")) return;
  const frame = document.createElement("div");
  frame.className = "code";
  const bar = document.createElement("div");
  bar.className = "code-bar";
  const language = document.createElement("span");
  language.textContent = pre.dataset.language || "";
  const copy = button(t().copy, "code-copy", () => {
    void copyText(code.textContent ?? "").then((done) => {
      copy.textContent = done ? t().copied : t().copy;
      setTimeout(() => (copy.textContent = t().copy), 1600);
    });
  });
  copy.setAttribute("aria-label", t().copyCode);
  bar.append(language);
  if (kindOfLanguage(language.textContent)) {
    bar.append(button(t().preview, "code-copy", () => frame.dispatchEvent(new CustomEvent("preview", { bubbles: true, detail: { language: pre.dataset.language, text: code.textContent } }))));
  }
  bar.append(copy);
  frame.dir = "ltr"; // code is left to right, whatever the direction of the text around it
  pre.tabIndex = 0; // wide code can also be scrolled with the keyboard
  pre.replaceWith(frame);
  frame.append(bar, pre);
}

async function colour(block: HTMLElement): Promise<void> {
  const codes = [...block.querySelectorAll<HTMLElement>("pre[data-language] > code")].filter(
    (code) => code.parentElement?.dataset.language && (code.textContent?.length ?? 0) < HIGHLIGHT_LIMIT,
  );
  if (!codes.length) return;
  const loaded = await late(import("./highlight"));
  if (!loaded) return;
  for (const code of codes) {
    const coloured = loaded.highlight(code.textContent ?? "", code.parentElement?.dataset.language ?? "");
    if (coloured !== null && code.isConnected) code.innerHTML = coloured; // the highlighter escapes what it reads
  }
}

async function formulas(block: HTMLElement): Promise<void> {
  const found = block.querySelectorAll<HTMLElement>(".math");
  if (!found.length) return;
  const loaded = await late(import("./katex"));
  for (const element of found) {
    if (element.isConnected) loaded?.renderMath(element);
  }
}

async function diagrams(block: HTMLElement): Promise<void> {
  const found = [...block.querySelectorAll<HTMLElement>('pre[data-language="mermaid"]')];
  if (!found.length) return;
  const loaded = await late(import("./diagram"));
  for (const pre of found) await loaded?.showDiagram(pre);
}

function image(placeholder: HTMLElement): void {
  const address = placeholder.dataset.src ?? "";
  let host = address;
  try {
    const url = new URL(address);
    if (url.protocol !== "https:" && url.protocol !== "http:") throw new Error(url.protocol);
    host = url.host;
  } catch {
    return; // nothing can be fetched: only the alternative text is shown
  }
  const alternative = placeholder.textContent ?? "";
  const show = (): void => {
    const shown = document.createElement("img");
    shown.alt = alternative;
    shown.referrerPolicy = "no-referrer";
    shown.loading = "lazy";
    shown.addEventListener("error", () => {
      const link = document.createElement("a");
      link.href = address;
      link.target = "_blank";
      link.rel = "noopener noreferrer nofollow";
      link.textContent = t().openLink;
      const words = document.createElement("span");
      words.textContent = `${t().remoteImage(host)}: ${t().imageFailed}`;
      placeholder.replaceChildren(words, link);
      shown.replaceWith(placeholder);
    });
    shown.src = address;
    placeholder.replaceWith(shown);
  };
  if (settings.remoteImages === "always") return show();
  const words = document.createElement("span");
  words.textContent = alternative ? `${t().remoteImage(host)} · ${alternative}` : t().remoteImage(host);
  placeholder.replaceChildren(words, button(t().showImage, "small-button", show));
  placeholder.dataset.testid = "remote-image";
}

export function enrich(block: HTMLElement, streaming: boolean): void {
  for (const pre of block.querySelectorAll("pre")) codeBlock(pre);
  for (const placeholder of block.querySelectorAll<HTMLElement>(".remote-image")) image(placeholder);
  for (const box of block.querySelectorAll<HTMLInputElement>("input[type=checkbox]")) {
    box.ariaLabel = box.checked ? t().taskDone : t().taskOpen;
  }
  for (const table of block.querySelectorAll("table")) {
    const frame = document.createElement("div");
    frame.className = "table";
    frame.tabIndex = 0;
    table.replaceWith(frame);
    frame.append(table);
  }
  if (!block.querySelector(".math, pre[data-language]")) return;
  whenNear(block, () => {
    void formulas(block);
    if (streaming) return;
    void colour(block);
    void diagrams(block);
  });
}
