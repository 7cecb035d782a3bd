/** A list of things that can be removed: who removes one by the keyboard goes on from the list, not from the top of the page. */
export function keepFocus(list: HTMLElement): () => void {
  let last: EventTarget | null = null;
  const remember = ({ target }: FocusEvent): void => void (last = target);
  const observer = new MutationObserver(() => {
    if (document.activeElement !== document.body || !(last instanceof Node) || last.isConnected) return;
    last = null;
    list.focus({ preventScroll: true });
  });
  list.tabIndex = -1;
  list.addEventListener("focusin", remember);
  observer.observe(list, { childList: true, subtree: true });
  return () => observer.disconnect();
}
