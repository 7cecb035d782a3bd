/** Ask several models the same question at the same time: each adds a version of the answer. */

import * as api from "../api/calls";

export class AskedModel {
  /** The turn in which it answers, after the request was sent. */
  turn = $state<string | null>(null);
  problem = $state("");

  constructor(readonly model: string) {}
}

/** Each returned object reports the result of its model. */
export function askSeveral(answer: string, models: string[]): AskedModel[] {
  const asked = models.map((model) => new AskedModel(model));
  void askAll(answer, asked);
  return asked;
}

/** The models answer at the same time. Their versions have the order of the requests. */
async function askAll(answer: string, asked: AskedModel[]): Promise<void> {
  for (const one of asked) {
    try {
      one.turn = (await api.rerun(answer, { model: one.model, parallel: true })).turn;
    } catch (error) {
      one.problem = error instanceof Error ? error.message : String(error);
    }
  }
}
