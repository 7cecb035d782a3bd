/** One block of Markdown in, HTML out: the HTML is not yet to be trusted (`sanitise.ts`). */

import { Marked, type Token, type Tokens } from "marked";

import { blockMath, inlineMath } from "./math";

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** Tags that a model may write into its Markdown. They lose their attributes; all others are shown as text. */
const PLAIN = /^<(\/?)(br|sub|sup|kbd|mark|u|b|i|em|strong|small|del|ins|details|summary)\s*\/?>$/i;

const tamed = (html: string): string =>
  html.replace(/<[^>]*>?|[^<]+/g, (piece) => {
    const tag = PLAIN.exec(piece);
    return tag ? `<${tag[1]}${tag[2]?.toLowerCase()}>` : escaped(piece);
  });

const INLINE_IMAGE = /^(?:data:image\/(?:png|jpeg|gif|webp);base64,|\/api\/files\/)/i;

const marked = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag) => tamed(text),
    code: ({ text, lang }: Tokens.Code) => {
      const language = /^[\w+#.-]+/.exec(lang ?? "")?.[0] ?? "";
      return `<pre data-language="${escaped(language)}"><code>${escaped(text)}</code></pre>\n`;
    },
    image: ({ href, text }: Tokens.Image) => {
      if (INLINE_IMAGE.test(href)) return `<img src="${escaped(href)}" alt="${escaped(text)}">`;
      if (!/^https?:\/\//i.test(href)) return escaped(text);
      return `<span class="remote-image" data-src="${escaped(href)}">${escaped(text)}</span>`;
    },
  },
});
marked.use({ extensions: [blockMath, inlineMath] });

export const lex = (text: string): Token[] => marked.lexer(text);

export function parse(block: string, definitions = ""): string {
  const text = definitions && !block.includes(definitions) ? `${block}\n\n${definitions}` : block;
  return marked.parse(text, { async: false });
}
