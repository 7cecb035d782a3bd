/** The page of a read-only link begins here: it signs nobody in, and loads nothing of the other page but what it shows. */

import { mount } from "svelte";

import { speak } from "../i18n/words.svelte";
import { showTheme } from "../state/settings.svelte";
import markdown from "../style/markdown.css?inline";
import page from "../style/page.css?inline";
import tokens from "../style/tokens.css?inline";
import SharedPage from "./SharedPage.svelte";

// As text: as files that both pages share, they would be cut smaller, and more of them, for the other one.
const styles = new CSSStyleSheet();
styles.replaceSync(tokens + page + markdown);
document.adoptedStyleSheets = [styles];

addEventListener("hashchange", () => location.reload()); // another link

showTheme();
await speak();
mount(SharedPage, { target: document.getElementById("app") ?? document.body });
