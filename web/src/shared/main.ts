/** The entry point of the page for a read-only link. It has no sign-in and loads only what it shows from the web UI. */

import { mount } from "svelte";

import { speak } from "../i18n/words.svelte";
import { showTheme } from "../state/settings.svelte";
import markdown from "../style/markdown.css?inline";
import page from "../style/page.css?inline";
import tokens from "../style/tokens.css?inline";
import SharedPage from "./SharedPage.svelte";

// Inline: as files that both pages share, the bundler would split them into more and smaller files for the web UI.
const styles = new CSSStyleSheet();
styles.replaceSync(tokens + page + markdown);
document.adoptedStyleSheets = [styles];

addEventListener("hashchange", () => location.reload()); // another link

showTheme();
await speak();
mount(SharedPage, { target: document.getElementById("app") ?? document.body });
