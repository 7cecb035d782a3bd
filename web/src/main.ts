/** The page begins here. */

import { withBase } from "./basePath";
import "./style/tokens.css";
import "./style/page.css";
import "./style/markdown.css";

import { mount } from "svelte";

import App from "./App.svelte";
import { loadMessages } from "./conversation/messages.svelte";
import { speak, t } from "./i18n/words.svelte";
import { app } from "./state/app.svelte";
import { readKept, showTheme } from "./state/settings.svelte";
import { tell } from "./state/toasts.svelte";

// The server was replaced by a newer one, which has other files, or is away. What is loaded then is undefined.
addEventListener("vite:preloadError", (event) => {
  event.preventDefault();
  tell(t().newVersion, "note", { label: t().reload, run: () => location.reload() }, 60);
});

addEventListener("storage", () => {
  readKept();
  void speak();
});

const target = document.getElementById("app") ?? document.body;
showTheme();
if (location.pathname === withBase("/callback")) { // from a sign-in at an MCP server
  await speak();
  mount((await import("./setup/Returned.svelte")).default, { target });
} else {
  void loadMessages();
  await speak();
  mount(App, { target });
  void app.start();
  // What messages will need, fetched while they are.
  void import("./markdown/Rich.svelte");
  void import("./calls/CallList.svelte");
}
