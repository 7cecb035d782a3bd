/** The models to choose from, in groups: recently chosen and local models first, then others, then the typed name. */

import type { Model, Provider } from "../api/types";
import { saidIn, type Sentence } from "../i18n/format";

const GROUPS = ["usual", "recent", "custom", "running", "others", "media", "missing"] as const;
export type ModelGroup = (typeof GROUPS)[number];

export interface ModelChoice {
  /** Null: the default model. */
  name: string | null;
  title: string;
  provider: Sentence;
  model: Model | null;
  /** The reason why it cannot answer. */
  missing: Sentence | null;
  chosen: boolean;
  typed: boolean;
  group: ModelGroup;
}

const SHOWN = 200; // maximum number per group: some providers list thousands

export function choicesOf(words: string, models: Model[], providers: Provider[], chosen: string | null, recent: string[] = []): ModelChoice[] {
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
      group: groupOf(model, providers, recent),
    }));
  const usual: ModelChoice = { name: null, title: "", provider: "", model: null, missing: null, chosen: chosen === null, typed: false, group: "usual" };
  const all = [...(wanted.length ? [] : [usual]), ...found, ...typed(words.trim(), known, providers, chosen)];
  return GROUPS.filter((group) => group !== "missing" || wanted.length).flatMap((group) => {
    const inside = all.filter((choice) => choice.group === group);
    if (group === "recent") inside.sort((one, other) => recent.indexOf(one.name ?? "") - recent.indexOf(other.name ?? ""));
    return inside.slice(0, SHOWN);
  });
}

function groupOf(model: Model, providers: Provider[], recent: string[]): ModelGroup {
  if (!model.ready) return "missing";
  if (model.type !== "chat") return "media";
  if (recent.includes(model.name)) return "recent";
  const provider = providers.find(({ name }) => model.name.startsWith(`${name}/`));
  return provider?.custom ? "custom" : provider?.local ? "running" : "others";
}

/** Any name of a known provider is accepted: no list contains all models. */
function typed(name: string, known: Model[], providers: Provider[], chosen: string | null): ModelChoice[] {
  const [, prefix] = /^([^/\s]+)\/\S+$/.exec(name) ?? [];
  const provider = providers.find((one) => one.name === prefix);
  if (!provider || known.some((model) => model.name === name)) return [];
  const missing = provider.ready ? null : saidIn(provider, provider.missing ? "missing" : "title");
  return [{ name, title: name, provider: saidIn(provider, "title"), model: null, missing, chosen: name === chosen, typed: true, group: missing === null ? "others" : "missing" }];
}
