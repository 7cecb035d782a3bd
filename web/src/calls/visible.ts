/** Characters that change how a text looks without being seen are written out: what is approved is what is read. */

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g;

export const visible = (text: string): string =>
  text.replace(UNSEEN, (sign) => (sign === "\r" ? "" : `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`));
