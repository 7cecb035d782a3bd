/** A dialog that is shown over everything while it is in the page, and gives the focus back to where it was. */
export function modal(dialog: HTMLDialogElement): () => void {
  const before = document.activeElement;
  dialog.showModal();
  return () => {
    dialog.close();
    const lost = !document.activeElement || document.activeElement === document.body || dialog.contains(document.activeElement);
    if (lost && before instanceof HTMLElement) before.focus();
  };
}
