/** Kinds of approval requests, for code that needs to know nothing else about them. */

import type { Question } from "../api/types";

/** Whether the approval request is about the arguments of a call, and not about its result or a tool's question. */
export const asksToRun = ({ kind }: Question): boolean => kind !== "review" && kind !== "tool";

/** Whether a tool asks for text: it has no choices and no form, or also accepts text. */
export const takesWords = ({ kind, free, choices, schema }: Question): boolean => kind === "tool" && (free || !choices.length) && !schema.properties;
