/** What is asked of the server when it is shown, and again when the connection is back: it may not have been heard. */

import { untrack } from "svelte";

import { live } from "./live.svelte";

export function nowAndWhenBack(load: () => unknown): void {
  const lost = $derived(live.connection === "waiting");
  let asked = false;
  $effect(() => {
    if (!lost || !asked) untrack(load);
    asked = true;
  });
}
