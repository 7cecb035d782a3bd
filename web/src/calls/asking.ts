/** The approval requests on the screen. This list replaces a scan of the whole document with each word that arrives. */

const asked = new Set<HTMLElement>();

/** An attachment for the element of an approval request. */
export function asks(question: HTMLElement): () => void {
  asked.add(question);
  return () => asked.delete(question);
}

const isBefore = (one: Node, other: Node): boolean => !!(one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING);

/** Return the first card inside the element that asks something, or in which a call does. */
export function firstAsking(element: HTMLElement): Element | null {
  let first: Element | null = null;
  for (const question of asked) {
    const card = element.contains(question) ? outermost(question, element) : null;
    if (card && (!first || isBefore(card, first))) first = card;
  }
  return first;
}

function outermost(question: HTMLElement, inside: HTMLElement): Element | null {
  let card: Element | null = null;
  for (let at = question.closest("[data-call]"); at && inside.contains(at); at = at.parentElement?.closest("[data-call]") ?? null) card = at;
  return card;
}
