/** Delay work on an element until it is nearly in view, so that a long conversation is not rendered all at the same
 * time. */

const waiting = new WeakMap<Element, () => void>();
let observer: IntersectionObserver | null = null;

/** Returns a function that cancels the work. */
export function whenNear(element: Element, work: () => void): () => void {
  observer ??= new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        observer?.unobserve(entry.target);
        waiting.get(entry.target)?.();
        waiting.delete(entry.target);
      }
    },
    { rootMargin: "1200px" },
  );
  waiting.set(element, work);
  observer.observe(element);
  return () => observer?.unobserve(element);
}
