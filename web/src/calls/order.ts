/** The order of approval requests, wherever several of them are shown. */

import type { Question } from "../api/types";

/** In the order of their calls in the conversation: calls of one reply keep its order, whichever was asked about
 * first. */
export function inOrder(questions: Iterable<Question>): Question[] {
  const places = new Map([...questions].map((question) => [question, /^(.*?)(?:_(\d+))?$/.exec(question.call)]));
  const first = new Map<string, number>(); // by reply
  for (const [{ asked }, place] of places) first.set(place?.[1] ?? "", Math.min(asked, first.get(place?.[1] ?? "") ?? Infinity));
  const began = (question: Question): number => first.get(places.get(question)?.[1] ?? "") ?? 0;
  const number = (question: Question): number => Number(places.get(question)?.[2] ?? 0);
  return [...places.keys()].sort((one, other) => began(one) - began(other) || number(one) - number(other) || one.asked - other.asked);
}
