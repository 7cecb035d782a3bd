/** Reduce HTML to passive content. */

import DOMPurify from "dompurify";

import { withBase } from "../basePath";

const TAGS = (
  "p br hr h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong del ins mark u b i small sub sup kbd " +
  "a img table thead tbody tr th td span div input details summary"
).split(" ");
const ATTRIBUTES = ["href", "title", "src", "alt", "align", "start", "type", "checked", "disabled", "class"];
const ALERTS = ["note", "tip", "important", "warning", "caution"].map((kind) => `alert ${kind}`);
const CLASSES = new Set(["math", "remote-image", "footnote", ...ALERTS]);

/** Server paths without a base path: the server does not know the path at which a proxy serves it. */
const OURS = /^\/(?:api\/files|c)\//;

const purify = DOMPurify();

purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.hasAttribute("class") && !CLASSES.has(node.className)) node.removeAttribute("class");
  if (node.tagName === "A") {
    if (OURS.test(node.getAttribute("href") ?? "")) node.setAttribute("href", withBase(node.getAttribute("href") ?? ""));
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer nofollow");
  } else if (node.tagName === "INPUT") {
    if (node.getAttribute("type") === "checkbox") node.setAttribute("disabled", "");
    else node.remove();
  } else if (node.tagName === "IMG") {
    if (!/^(?:data:image\/|\/api\/files\/)/.test(node.getAttribute("src") ?? "")) node.remove();
    else node.setAttribute("loading", "lazy");
    if (OURS.test(node.getAttribute("src") ?? "")) node.setAttribute("src", withBase(node.getAttribute("src") ?? ""));
  }
});

// Set the configuration once: parsing it for each text took longer than most texts.
purify.setConfig({
  ALLOWED_TAGS: TAGS,
  ALLOWED_ATTR: ATTRIBUTES,
  ADD_URI_SAFE_ATTR: ["align", "start", "type", "checked", "disabled"], // not URLs, so not to be checked as such
  ALLOW_DATA_ATTR: true, // only Dragoman's attributes: model output has lost its attributes before
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|tel:|data:image\/|\/api\/files\/|#|\/c\/)/i,
});

const BARE = TAGS.filter((tag) => !["a", "img", "input"].includes(tag)).join("|");
const HARMLESS = new RegExp(`</?(?:${BARE})>|<pre data-language="[\\w+#.-]*">`, "g");

/** Whether each tag in the text is allowed and has no attribute that needs checking. */
const isHarmless = (html: string): boolean => !html.replace(HARMLESS, "").includes("<");

export const sanitise = (html: string): string => (isHarmless(html) ? html : purify.sanitize(html));
