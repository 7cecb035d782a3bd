/** Keeps a scrolling element at its end while things grow in it, unless the person has scrolled up. */

const NEAR = 60;

export interface StickOptions {
  onAway: (away: boolean) => void;
  onReady: (jump: () => void) => void;
}

export function stickToEnd(options: StickOptions): (element: HTMLElement) => () => void {
  return (element) => {
    let stuck = true;
    const toEnd = (): void => {
      element.scrollTop = element.scrollHeight;
    };
    const far = (): number => element.scrollHeight - element.scrollTop - element.clientHeight;
    const onscroll = (): void => {
      stuck = far() < NEAR;
      options.onAway(far() > element.clientHeight * 0.6);
    };
    // Sizes settle late: lazy blocks, images, formulas. Whatever grows, the end stays in view.
    const sizes = new ResizeObserver(() => {
      if (stuck) toEnd();
    });
    const children = new MutationObserver(() => {
      sizes.disconnect();
      sizes.observe(element);
      for (const child of element.children) sizes.observe(child);
      if (stuck) toEnd();
    });
    element.addEventListener("scroll", onscroll, { passive: true });
    element.addEventListener("wheel", (event) => event.deltaY < 0 && (stuck = false), { passive: true });
    children.observe(element, { childList: true });
    sizes.observe(element);
    for (const child of element.children) sizes.observe(child);
    options.onReady(() => {
      stuck = true;
      toEnd();
    });
    return () => {
      sizes.disconnect();
      children.disconnect();
      element.removeEventListener("scroll", onscroll);
    };
  };
}
