/** Work on an element that waits until it is nearly in view: a long conversation is not drawn all at once. */

const waiting = new WeakMap<Element, () => void>();
let observer: IntersectionObserver | null = null;

/** Returns what takes it back. */
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
