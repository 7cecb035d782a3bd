/** The entry point of the web UI. */

import { withBase } from "./basePath";
import "./style/tokens.css";
import "./style/page.css";
import "./style/markdown.css";
import "./style/seen.css";

import { mount } from "svelte";

import { text } from "./api/client";
import App from "./App.svelte";
import { drafts, LEFT } from "./composer/drafts";
import { loadMessages } from "./conversation/messages.svelte";
import { speak, t } from "./i18n/words.svelte";
import { app } from "./state/app.svelte";
import { catalog } from "./state/catalog.svelte";
import { readKept, showTheme } from "./state/settings.svelte";
import { attempt, tell } from "./state/toasts.svelte";

const reload = (): void => location.reload();

// The server was replaced by a newer version with other files, or is unreachable. The failed import then returns
// undefined.
addEventListener("vite:preloadError", async (event) => {
  event.preventDefault();
  if (await attempt(() => text("/"))) tell(t().newVersion, "note", { label: t().reload, run: reload }, 60);
  else app.lacking = true;
});

addEventListener("storage", ({ key }) => {
  if (key === LEFT) (drafts.clear(), reload()); // signed out in another tab
  readKept();
  void speak();
});

const target = document.getElementById("app") ?? document.body;
showTheme();
if (location.pathname === withBase("/callback")) { // returning from a sign-in at an MCP server
  await speak();
  mount((await import("./setup/Returned.svelte")).default, { target });
} else {
  const opens = location.pathname.startsWith(withBase("/c/"));
  if (opens) void loadMessages();
  await speak();
  mount(App, { target });
  void app.start();
  // Prefetch what messages need while they are fetched, or while the first one of a new conversation is typed.
  const fetchParts = (): void => {
    void loadMessages();
    void catalog.loadAll();
    void import("./markdown/Rich.svelte");
    void import("./calls/CallList.svelte");
  };
  if (opens) fetchParts();
  else addEventListener("input", fetchParts, { once: true });
}
