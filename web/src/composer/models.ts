/** The models to choose from: those that are ready, then others, then the name as it was typed. */

import type { Model, Provider } from "../api/types";
import { saidIn, type Sentence } from "../i18n/format";

export interface ModelChoice {
  /** Null: the one that is meant where none is named. */
  name: string | null;
  title: string;
  provider: Sentence;
  model: Model | null;
  /** What keeps it from answering. */
  missing: Sentence | null;
  chosen: boolean;
  typed: boolean;
}

const SHOWN = 200;

export function choicesOf(words: string, models: Model[], providers: Provider[], chosen: string | null): ModelChoice[] {
  const wanted = words.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const known = [...new Map(models.map((model) => [model.name, model])).values()];
  const found: ModelChoice[] = known
    .filter((model) => wanted.every((word) => `${model.name} ${model.title} ${model.provider} ${model.type}`.toLowerCase().includes(word)))
    .map((model) => ({
      name: model.name,
      title: model.title || model.name,
      provider: saidIn(model, "provider"),
      model,
      missing: model.ready ? null : saidIn(model, model.missing ? "missing" : "provider"),
      chosen: model.name === chosen,
      typed: false,
    }));
  const usual: ModelChoice = { name: null, title: "", provider: "", model: null, missing: null, chosen: chosen === null, typed: false };
  const ready = found.filter((choice) => choice.missing === null);
  const others = found.filter((choice) => choice.missing !== null);
  return [...(wanted.length ? [] : [usual]), ...ready, ...typed(words.trim(), known, providers, chosen), ...(wanted.length ? others : [])].slice(0, SHOWN);
}

/** Any name of a known provider will do: nobody lists all models. */
function typed(name: string, known: Model[], providers: Provider[], chosen: string | null): ModelChoice[] {
  const [, prefix] = /^([^/\s]+)\/\S+$/.exec(name) ?? [];
  const provider = providers.find((one) => one.name === prefix);
  if (!provider || known.some((model) => model.name === name)) return [];
  const missing = provider.ready ? null : saidIn(provider, provider.missing ? "missing" : "title");
  return [{ name, title: name, provider: saidIn(provider, "title"), model: null, missing, chosen: name === chosen, typed: true }];
}

/** Providers elsewhere that could answer, and of which nobody has named a model: they have to be asked for theirs. */
export function withoutModels(providers: Provider[], models: Model[]): Provider[] {
  return providers.filter(({ name, ready, local }) => ready && !local && !models.some((model) => model.name.startsWith(`${name}/`)));
}

/** Whether a name from an earlier day can still be meant. */
export function isKnown(name: string, models: Model[], providers: Provider[]): boolean {
  const provider = providers.find((one) => name.startsWith(`${one.name}/`));
  return models.some((model) => model.name === name && model.ready) || provider?.ready === true;
}
