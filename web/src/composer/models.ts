/** Which models can be chosen. This is needed before the list of models is opened. */

import type { Model, Provider } from "../api/types";

/** Remote providers that could answer and have no named model: their lists must be requested. */
export function withoutModels(providers: Provider[], models: Model[]): Provider[] {
  return providers.filter(({ name, ready, local }) => ready && !local && !models.some((model) => model.name.startsWith(`${name}/`)));
}

/** Whether a previously chosen name is still valid. */
export function isKnown(name: string, models: Model[], providers: Provider[]): boolean {
  const provider = providers.find((one) => name.startsWith(`${one.name}/`));
  return models.some((model) => model.name === name && model.ready) || provider?.ready === true;
}
