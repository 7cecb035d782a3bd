/** Keep a scrolling element at its end while its content grows, unless the user has scrolled up.
 *
 * It stops at the first card that asks something: the user must see the arguments before the buttons of an approval
 * request. */

import { firstAsking } from "../calls/asking";

const NEAR = 60;
const OPENS = "[aria-expanded], summary, [data-testid=show-all]";
const ABOVE = 12; // pixels that stay free above the card

export interface StickOptions {
  /** Whether to start at the beginning: there is nothing to follow yet. */
  fromTop: () => boolean;
  onAway: (away: boolean) => void;
  /** `leave`: stop following the end. */
  onReady: (jump: () => void, leave: () => void) => void;
}

export function stickToEnd(options: StickOptions): (element: HTMLElement) => () => void {
  return (element) => {
    let stuck = true;
    let last = 0; // the position at the last check
    /** At the end, this code keeps the position. Elsewhere the browser does, whatever grows above. */
    const stick = (on: boolean): void => {
      stuck = on;
      element.style.overflowAnchor = on ? "none" : "auto";
    };
    const end = (): number => element.scrollHeight - element.clientHeight;
    const target = (): number => {
      if (options.fromTop()) return 0;
      const card = firstAsking(element);
      if (!card) return end();
      const top = card.getBoundingClientRect().top - element.getBoundingClientRect().top + element.scrollTop;
      return Math.max(0, Math.min(end(), top - ABOVE));
    };
    const follow = (): void => {
      const wanted = target();
      if (element.scrollTop < wanted) element.scrollTop = wanted;
      last = element.scrollTop;
    };
    // The event comes a frame late. Growth in between moves the end away, so only scrolling up stops the following.
    const onscroll = (): void => {
      const top = element.scrollTop;
      if (top > target() - NEAR) stick(true);
      else if (top < last) stick(false);
      last = top;
      options.onAway(!options.fromTop() && end() - element.scrollTop > element.clientHeight * 0.6);
    };
    // Sizes settle late: lazy blocks, images, formulas. Keep the end in view while content grows. Content that a user
    // opens is read from its beginning.
    let opened = false;
    const sizes = new ResizeObserver(() => {
      if (opened) stick(element.scrollTop >= target() - NEAR);
      if (stuck) follow();
    });
    const onclick = (event: MouseEvent): void => {
      const clicked = event.target as Element;
      if (clicked.closest("[data-testid=versions]")) stick(false); // another branch is shown from its beginning
      opened = clicked.closest(OPENS) !== null;
      requestAnimationFrame(() => requestAnimationFrame(() => (opened = false)));
    };
    const children = new MutationObserver(() => {
      sizes.disconnect();
      sizes.observe(element);
      for (const child of element.children) sizes.observe(child);
      if (stuck) follow();
    });
    const onwheel = (event: WheelEvent): void => {
      if (event.deltaY < 0) stick(false);
    };
    element.addEventListener("scroll", onscroll, { passive: true });
    element.addEventListener("wheel", onwheel, { passive: true });
    element.addEventListener("click", onclick);
    children.observe(element, { childList: true });
    sizes.observe(element);
    for (const child of element.children) sizes.observe(child);
    const jump = (): void => {
      stick(true);
      element.scrollTop = target();
      last = element.scrollTop;
    };
    stick(true);
    options.onReady(jump, () => stick(false));
    return () => {
      sizes.disconnect();
      children.disconnect();
      element.removeEventListener("scroll", onscroll);
      element.removeEventListener("wheel", onwheel);
      element.removeEventListener("click", onclick);
    };
  };
}
