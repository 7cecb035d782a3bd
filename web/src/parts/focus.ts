/** Something whose parts come and go: who removes one by the keyboard goes on from there, not from the top of the page; from
 * the one that Tab leads to, where that is said. */
export function keepFocus(list: HTMLElement): () => void {
  let last: Node | null = null;
  const observer = new MutationObserver(() => {
    if (document.activeElement !== document.body || !last || last.isConnected) return;
    last = null;
    (list.querySelector<HTMLElement>("[tabindex='0']") ?? list).focus({ preventScroll: true });
  });
  list.tabIndex = -1;
  list.addEventListener("focusin", ({ target }) => void (last = target as Node));
  observer.observe(list, { childList: true, subtree: true });
  return () => observer.disconnect();
}
