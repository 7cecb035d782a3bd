/** The user's input in an approval request that was answered elsewhere while it was not shown here: it would be lost
 * silently. */

import { at, get, Problem } from "../api/client";
import type { Question } from "../api/types";
import { forget } from "./kept";

const BEGUN = /^dragoman\.draft\.ask\.(?!rerun\.)(.+)$/; // as kept.ts names the fields

export async function forgetClosed(): Promise<void> {
  for (const id of begun()) {
    const closed = await get<Question>(at`/api/questions/${id}`).then(
      ({ answer, closed }) => answer !== null || closed !== null,
      (error) => error instanceof Problem && error.status === 404,
    );
    if (closed) forget(id);
  }
}

function begun(): string[] {
  try {
    return Object.keys(sessionStorage).flatMap((key) => BEGUN.exec(key)?.[1] ?? []);
  } catch {
    return []; // storage is disabled
  }
}
