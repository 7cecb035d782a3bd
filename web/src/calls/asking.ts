/** The questions that stand on the page, so that nobody has to look for them in all that is there with each word that arrives. */

const asked = new Set<HTMLElement>();

/** To be attached to a question. */
export function asks(question: HTMLElement): () => void {
  asked.add(question);
  return () => asked.delete(question);
}

const isBefore = (one: Node, other: Node): boolean => !!(one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING);

/** The first card inside the element that asks something, or in which a call does. */
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
