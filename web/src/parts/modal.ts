/** A modal dialog that is open while it is in the document. It returns the focus to the previous element, or to the
 * message field. */
export function modal(dialog: HTMLDialogElement): () => void {
  const before = document.activeElement;
  const toasts = document.getElementById("toasts");
  dialog.showModal();
  if (toasts) dialog.append(toasts); // everything outside is behind the dialog and receives no click
  return () => {
    dialog.close();
    if (toasts) ([...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body).append(toasts);
    const lost = !document.activeElement || document.activeElement === document.body || dialog.contains(document.activeElement);
    if (lost && before instanceof HTMLElement) (before.isConnected ? before : document.getElementById("composer-text"))?.focus();
  };
}
