/** Convert one block of Markdown to HTML. The HTML is not trusted until `sanitise.ts` has processed it. */

import { Marked, type Token, type Tokens } from "marked";

import { t } from "../i18n/words.svelte";
import { bounded, spend } from "./budget";
import { footnoteDefinition, footnoteReference, type Footnotes, NONE, withFootnotes } from "./footnotes";
import { blockMath, inlineMath } from "./math";

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** Tags that a model can use in its Markdown. They lose their attributes; all other tags are shown as text. */
const PLAIN = /^<(\/?)(br|sub|sup|kbd|mark|u|b|i|em|strong|small|del|ins|details|summary)\s*\/?>$/i;

const tamed = (html: string): string =>
  html.replace(/<[^>]*>?|[^<]+/g, (piece) => {
    const tag = PLAIN.exec(piece);
    return tag ? `<${tag[1]}${tag[2]?.toLowerCase()}>` : escaped(piece);
  });

const INLINE_IMAGE = /^(?:data:image\/(?:png|jpeg|gif|webp);base64,|\/api\/files\/)/i;

const ALERT = /^<p>\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\][ \t]*(?:<br>)?\n?/i;
type Alert = "note" | "tip" | "important" | "warning" | "caution";

const marked = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag) => tamed(text),
    code: ({ text, lang }: Tokens.Code) => {
      const language = /^[\w+#.-]+/.exec(lang ?? "")?.[0] ?? "";
      return `<pre data-language="${escaped(language)}"><code>${escaped(text)}</code></pre>\n`;
    },
    blockquote({ tokens }: Tokens.Blockquote) {
      const inside = this.parser.parse(tokens);
      const alert = ALERT.exec(inside);
      const kind = alert?.[1]?.toLowerCase() as Alert | undefined;
      if (!alert || !kind) return `<blockquote>\n${inside}</blockquote>\n`;
      const rest = `<p>${inside.slice(alert[0].length)}`.replace(/^<p>\s*<\/p>/, "");
      return `<blockquote class="alert ${kind}">\n<p><strong>${escaped(t().alerts[kind])}</strong></p>${rest}</blockquote>\n`;
    },
    /** "42." is an answer, not the beginning of a list. */
    list: ({ items: [only, ...more], ordered, raw }: Tokens.List) => (ordered && only?.text === "" && !more.length ? `<p>${escaped(raw.trim())}</p>\n` : false),
    image: ({ href, text }: Tokens.Image) => {
      if (INLINE_IMAGE.test(href)) return `<img src="${escaped(href)}" alt="${escaped(text)}">`;
      if (!/^https?:\/\//i.test(href)) return escaped(text);
      return `<span class="remote-image" data-src="${escaped(href)}">${escaped(text)}</span>`;
    },
  },
});
marked.use({ extensions: [blockMath, inlineMath, footnoteReference, footnoteDefinition] });

const LEVEL = 8; // approximate number of times that a list or a quote is scanned for its content

// These tokenizers run first wherever something can begin, in a line, a list or a quote, with all the remaining text.
marked.use({
  tokenizer: {
    escape(source) {
      spend(source.length);
      return false;
    },
    space(source) {
      if (!this.lexer.state.top) spend(source.length * LEVEL);
      return false;
    },
    blockquote(source) {
      const end = source.startsWith(">") ? source.indexOf("\n\n") : 0;
      spend((end < 0 ? source.length : end) * LEVEL);
      return false;
    },
  },
});

const OPENS = /^ {0,3}(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])/;
/** Lists and quotes nested so deeply that no browser renders them in time. */
const DEEP = /^(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t]){300}/m;

let notLexed = "";
let notParsed = "";

/** A text that only grew since it was refused is still too much work. */
const isKnown = (text: string, refused: string): boolean => refused !== "" && text.startsWith(refused);

/** Only the blocks: their inline content is parsed when they are shown. Empty if that is too much work. */
export function lex(text: string): Token[] {
  const read = (): Token[] => new marked.Lexer(marked.defaults).blockTokens(text.replace(/\r\n|\r/g, "\n"), []);
  const tokens = isKnown(text, notLexed) ? null : bounded(read);
  if (!tokens) notLexed = text;
  return tokens ?? [];
}

/** A block that is too much work is shown as its source. */
export function parse(block: string, definitions = "", notes: Footnotes = NONE): string {
  const text = definitions && !block.includes(definitions) ? `${block}\n\n${definitions}` : block;
  const read = (): string => withFootnotes(notes, () => marked.parse(text, { async: false }));
  const html = isKnown(block, notParsed) || (OPENS.test(block) && DEEP.test(block)) ? null : bounded(read);
  if (html === null) notParsed = block;
  return html ?? `<pre><code>${escaped(block)}</code></pre>\n`;
}
