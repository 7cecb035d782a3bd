/** Escapes characters that change a text invisibly, so that the user approves what they read (P14). The twin of
 * `src/dragoman/visible_text.py`; `tests/visible_text.json` keeps both equal. */

// Controls, direction marks, joiners, fillers, variation selectors, tags, private-use characters and unpaired
// surrogates.
const UNSEEN =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{110bd}\u{110cd}\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{10ffff}]/gu; // eslint-disable-line no-control-regex
// Words of these scripts, and symbols, are not written correctly without them.
const JOINED = /^[\p{sc=Arab}\p{sc=Deva}\p{sc=Beng}\p{sc=Guru}\p{sc=Gujr}\p{sc=Taml}\p{sc=Telu}\p{sc=Knda}\p{sc=Mlym}\p{sc=Sinh}]$/u;
const PICTURE = /^[\p{So}\u{1f3fb}-\u{1f3ff}]$/u;
const NUMBER = /\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\u[0-9a-f]{4}/g;

function belongs(sign: string, before: string[], after: string): boolean {
  const last = before.at(-1) ?? "";
  if (sign === "\ufe0f") return PICTURE.test(last);
  if (sign === "\u200d" && PICTURE.test(after)) return PICTURE.test(last === "\ufe0f" ? (before.at(-2) ?? "") : last);
  return (sign === "\u200c" || sign === "\u200d") && JOINED.test(last) && JOINED.test(after);
}

/** Escaped as in JSON: the result is JSON of the same value. */
const written = (sign: string): string => sign.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");

export const visible = (text: string): string =>
  text.replace(UNSEEN, (sign, at: number) => {
    const [before, [after = ""]] = [[...text.slice(Math.max(0, at - 4), at)], [...text.slice(at + sign.length, at + sign.length + 2)]];
    return belongs(sign, before, after) ? sign : written(sign);
  });

/** The invisible characters of a text, as code points; "" if there are none. */
export const unseenIn = (text: string): string => (visible(text) === text ? "" : (visible(text).match(NUMBER)?.slice(0, 8).join(" ") ?? ""));

export const visibleJson = (value: unknown): string => visible(JSON.stringify(value, null, 2));

export function firstLine(text: string): string {
  return /\S.*/.exec(text)?.[0].slice(0, 300) ?? "";
}
