/** Request data when a component is shown, and again after a reconnect, because events can be lost in between. */

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
