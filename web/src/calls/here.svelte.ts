/** Calls that this browser runs. Each runs once, whatever is shown meanwhile and however many tabs are open. */

import { SvelteSet } from "svelte/reactivity";

import * as api from "../api/calls";
import { at, get, Problem } from "../api/client";
import type { CallPart } from "../api/types";
import { late } from "../parts/late";
import { attempt } from "../state/toasts.svelte";

const FIRST_PAUSE = 300;
const LONGEST_PAUSE = 5000;

const running = new SvelteSet<string>();
/** Calls that need a click to run again. */
const begun = new Set<string>();

export const isRunningHere = (call: string): boolean => running.has(call);
export const hasBegunHere = (call: string): boolean => begun.has(call);

/** The call counts as running until the stream reports its end. */
export async function runHere({ id, arguments: values }: CallPart, name: string): Promise<void> {
  if (running.has(id)) return;
  running.add(id);
  begun.add(id);
  const over = await attempt(() =>
    alone(id, async () => {
      const loaded = await late(import("../sandbox/tools"));
      if (loaded) await deliver(id, await loaded.runTool(name, values));
      return loaded !== undefined;
    }),
  );
  if (!over) running.delete(id);
}

/** If another tab runs the call, wait for it. The lock API exists only in a secure context. */
async function alone(call: string, work: () => Promise<boolean>): Promise<boolean> {
  const locks = navigator.locks as LockManager | undefined;
  if (!locks) return work();
  const name = `dragoman.call.${call}`;
  const done = await locks.request(name, { ifAvailable: true }, (lock) => (lock ? work() : null));
  if (done !== null) return done;
  await locks.request(name, () => undefined);
  return (await get<CallPart>(at`/api/calls/${call}`)).state !== "running"; // that tab can have been closed
}

/** Keep the result if the server is unreachable or requires another sign-in. */
export async function deliver(call: string, result: { text: string; failed: boolean }): Promise<void> {
  for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
    try {
      await api.deliver(call, result);
      return;
    } catch (error) {
      const status = error instanceof Problem ? error.status : null;
      if (status === 409) return; // the call has a result by now
      if (status === null || (status !== 0 && status !== 401 && status < 500)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
