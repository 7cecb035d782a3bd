/** One question to several models: a version of the answer each, one after the other, as a branch has one turn at a time. */

import * as api from "../api/calls";
import { Problem } from "../api/client";
import { t } from "../i18n/words.svelte";

const EVERY = 400; // milliseconds between two looks at the turn that runs

export class AskedModel {
  /** The turn in which it answers, once it is asked. */
  turn = $state<string | null>(null);
  problem = $state("");

  constructor(readonly model: string) {}
}

/** The models in the order in which they answer; what becomes of each is told there. */
export function askSeveral(answer: string, models: string[]): AskedModel[] {
  const asked = models.map((model) => new AskedModel(model));
  void askInTurn(answer, asked);
  return asked;
}

async function askInTurn(answer: string, asked: AskedModel[]): Promise<void> {
  for (const [place, one] of asked.entries()) {
    try {
      one.turn = (await api.rerun(answer, one.model)).turn;
    } catch (error) {
      one.problem = error instanceof Error ? error.message : String(error);
      continue;
    }
    if ((await endOf(one.turn)) === "cancelled") {
      for (const other of asked.slice(place + 1)) other.problem = t().severalStopped; // who stops one wants no more
      return;
    }
  }
}

/** The state that a turn ends in; "" where nobody can tell any more. */
async function endOf(turn: string): Promise<string> {
  for (;;) {
    try {
      const { live, state } = await api.turn(turn);
      if (!live) return state;
    } catch (error) {
      if (!(error instanceof Problem) || (error.status > 0 && error.status < 500)) return "";
    }
    await new Promise((done) => setTimeout(done, EVERY));
  }
}
