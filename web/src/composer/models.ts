/** Which models can be meant: needed before the list of them is opened. */

import type { Model, Provider } from "../api/types";

/** Providers elsewhere that could answer, and of which nobody has named a model: they have to be asked for theirs. */
export function withoutModels(providers: Provider[], models: Model[]): Provider[] {
  return providers.filter(({ name, ready, local }) => ready && !local && !models.some((model) => model.name.startsWith(`${name}/`)));
}

/** Whether a name from an earlier day can still be meant. */
export function isKnown(name: string, models: Model[], providers: Provider[]): boolean {
  const provider = providers.find((one) => name.startsWith(`${one.name}/`));
  return models.some((model) => model.name === name && model.ready) || provider?.ready === true;
}
