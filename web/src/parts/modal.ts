/** A dialog that is shown over everything while it is in the page, and gives the focus back to where it was, or to the message field. */
export function modal(dialog: HTMLDialogElement): () => void {
  const before = document.activeElement;
  const toasts = document.getElementById("toasts");
  dialog.showModal();
  if (toasts) dialog.append(toasts); // all that is outside of it is behind it, and hears no click
  return () => {
    dialog.close();
    if (toasts) ([...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body).append(toasts);
    const lost = !document.activeElement || document.activeElement === document.body || dialog.contains(document.activeElement);
    if (lost && before instanceof HTMLElement) (before.isConnected ? before : document.getElementById("composer-text"))?.focus();
  };
}
