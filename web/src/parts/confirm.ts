/** Ask for confirmation before an irreversible action. */

import { mount, unmount } from "svelte";

import ConfirmDialog from "./ConfirmDialog.svelte";

/** `does`: the label of the button that acts. */
export function confirmed(question: string, does: string): Promise<boolean> {
  return new Promise((resolve) => {
    const decide = (yes: boolean): void => {
      void unmount(dialog);
      resolve(yes);
    };
    const dialog = mount(ConfirmDialog, { target: document.body, props: { question, does, decide } });
  });
}
