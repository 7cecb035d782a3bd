/** Keep the keyboard focus inside a container whose parts are added and removed. After a removal, the focus does not
 * jump to the top of the document. In the list of conversations it moves to the row that Tab reaches, in a
 * conversation's header to the title. */
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
      if (last === target && last?.isConnected) last = null; // the element lost the focus, but was not removed
    });
  });
  observer.observe(list, { childList: true, subtree: true });
  return () => observer.disconnect();
}
