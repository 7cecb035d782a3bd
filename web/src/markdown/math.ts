/** Formulas inside Markdown: $…$, $$…$$, \(…\) and \[…\], found before their content is parsed as Markdown. */

import type { TokenizerAndRendererExtension, Tokens } from "marked";

import { inParagraph } from "./paragraph";

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign] ?? sign);

function rendered(token: Tokens.Generic): string {
  const tex = escaped(String(token.tex));
  return token.display
    ? `<div class="math" data-display="true">${tex}</div>\n`
    : `<span class="math">${tex}</span>`;
}

const BLOCK = /^(?: {0,3})(?:\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\])[ \t]*(?:\n+|$)/;
// A price is not a formula: allow no blank inside the signs and no digit after the closing one.
const INLINE = /^(?:\$\$([^$\n]+?)\$\$|\$((?:\\.|[^\s$\\])(?:(?:\\.|[^$\\\n])*?(?:\\.|[^\s$\\]))?)\$(?![\d\w])|\\\(([\s\S]+?)\\\))/;

export const blockMath: TokenizerAndRendererExtension = {
  name: "blockMath",
  level: "block",
  start: (source) => inParagraph(source, /(?:^|\n) {0,3}(?:\$\$|\\\[)/),
  tokenizer(source) {
    const match = BLOCK.exec(source);
    const tex = match?.[1] ?? match?.[2];
    return match && tex?.trim() ? { type: "blockMath", raw: match[0], tex: tex.trim(), display: true } : undefined;
  },
  renderer: rendered,
};

export const inlineMath: TokenizerAndRendererExtension = {
  name: "inlineMath",
  level: "inline",
  start: (source) => {
    const at = source.search(/\$|\\\(/);
    return at < 0 ? undefined : at;
  },
  tokenizer(source) {
    const match = INLINE.exec(source);
    const tex = match?.[1] ?? match?.[2] ?? match?.[3];
    return match && tex ? { type: "inlineMath", raw: match[0], tex: tex.trim(), display: false } : undefined;
  },
  renderer: rendered,
};
