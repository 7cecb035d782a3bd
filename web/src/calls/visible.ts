/** Characters that change how a text looks without being seen are written out: what is approved is what is read. */

// Controls, marks of direction, joiners, fillers, variation selectors, tags, private and broken ones.
const UNSEEN =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/gu;
// Words of these scripts and pictures are not written right without them.
const JOINED = /[\p{sc=Arab}\p{sc=Deva}\p{sc=Beng}\p{sc=Guru}\p{sc=Gujr}\p{sc=Taml}\p{sc=Telu}\p{sc=Knda}\p{sc=Mlym}\p{sc=Sinh}]/u;
const PICTURE = /[\p{Extended_Pictographic}\p{Emoji_Modifier}]\ufe0f?$/u;
const KEPT = "\n\t";

function belongs(sign: string, before: string, after: string): boolean {
  if (KEPT.includes(sign)) return true;
  if (sign === "\ufe0f") return PICTURE.test(before);
  if (sign === "\u200d" && PICTURE.test(before)) return /^\p{Extended_Pictographic}/u.test(after);
  return (sign === "\u200c" || sign === "\u200d") && JOINED.test(before.slice(-1)) && JOINED.test(after.slice(0, 1));
}

function written(sign: string): string {
  const code = sign.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

export const visible = (text: string): string =>
  text.replace(UNSEEN, (sign, at: number) => {
    if (sign === "\r") return "";
    return belongs(sign, text.slice(Math.max(0, at - 4), at), text.slice(at + sign.length, at + sign.length + 4)) ? sign : written(sign);
  });

/** Those of a text that are not seen, by their numbers; "" where all are. */
export const unseenIn = (text: string): string =>
  visible(text) === text ? "" : (visible(text).match(/\\u[^\s]{4,8}/g)?.slice(0, 8).join(" ") ?? "");

/** The same for JSON, which stays JSON of the same value. */
export const visibleJson = (value: unknown): string =>
  JSON.stringify(value, null, 2).replace(UNSEEN, (sign) => (KEPT.includes(sign) ? sign : [...sign.split("")].map(written).join("")));

export function firstLine(text: string): string {
  return /\S.*/.exec(text)?.[0].slice(0, 300) ?? "";
}
