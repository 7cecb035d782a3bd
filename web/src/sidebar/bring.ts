/** Import a conversation from a file. Loaded when the user has chosen one. */

import * as api from "../api/calls";
import { t } from "../i18n/words.svelte";
import { app } from "../state/app.svelte";
import { list } from "../state/list.svelte";
import { attempt } from "../state/toasts.svelte";

export async function bring(file: File): Promise<void> {
  const made = await attempt(async () => api.bring(read(await file.text())));
  if (!made) return;
  list.put(made);
  app.show(made.id);
}

/** The content of a file. Throws an error with a readable text if it is not an export. */
function read(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new Error(t().notAnExport);
  }
}
