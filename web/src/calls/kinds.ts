/** Kinds of questions, for who has to know no more of them. */

import type { Question } from "../api/types";

/** Whether it is about the arguments of a call, and not about its result or the tool's own. */
export const asksToRun = ({ kind }: Question): boolean => kind !== "review" && kind !== "tool";

/** Whether a tool asks for words: there is nothing to choose from, and no form, or a text does as well. */
export const takesWords = ({ kind, free, choices, schema }: Question): boolean => kind === "tool" && (free || !choices.length) && !schema.properties;
