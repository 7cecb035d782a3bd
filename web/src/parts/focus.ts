/** Something whose parts come and go: who removes one by the keyboard goes on from there, not from the top of the page: in the list
 * of conversations from the row that Tab leads to, in the head of one from its title. */
export function keepFocus(list: HTMLElement): () => void {
  let last: Node | null = null;
  const observer = new MutationObserver(() => {
    if (document.activeElement !== document.body || last?.isConnected !== false) return;
    last = null;
    (list.querySelector<HTMLElement>("a[tabindex='0'],h1 button") ?? list).focus({ preventScroll: true });
  });
  list.tabIndex = -1;
  list.addEventListener("focusin", ({ target }) => void (last = target as Node));
  list.addEventListener("focusout", ({ target }) => {
    setTimeout(() => {
      if (last === target && last?.isConnected) last = null; // it was left, not taken away
    });
  });
  observer.observe(list, { childList: true, subtree: true });
  return () => observer.disconnect();
}
