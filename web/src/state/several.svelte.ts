/** One question to several models at once: a version of the answer each. */

import * as api from "../api/calls";

export class AskedModel {
  /** The turn in which it answers, once it is asked. */
  turn = $state<string | null>(null);
  problem = $state("");

  constructor(readonly model: string) {}
}

/** What becomes of each is told there. */
export function askSeveral(answer: string, models: string[]): AskedModel[] {
  const asked = models.map((model) => new AskedModel(model));
  void askAll(answer, asked);
  return asked;
}

/** They answer at the same time, and their versions are in the order in which they are asked. */
async function askAll(answer: string, asked: AskedModel[]): Promise<void> {
  for (const one of asked) {
    try {
      one.turn = (await api.rerun(answer, { model: one.model, beside: true })).turn;
    } catch (error) {
      one.problem = error instanceof Error ? error.message : String(error);
    }
  }
}
