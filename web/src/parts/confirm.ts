/** Asks before something is done that cannot be taken back. */

import { mount, unmount } from "svelte";

import ConfirmDialog from "./ConfirmDialog.svelte";

/** `does`: what the button says that does it. */
export function confirmed(question: string, does: string): Promise<boolean> {
  return new Promise((resolve) => {
    const decide = (yes: boolean): void => {
      void unmount(dialog);
      resolve(yes);
    };
    const dialog = mount(ConfirmDialog, { target: document.body, props: { question, does, decide } });
  });
}
