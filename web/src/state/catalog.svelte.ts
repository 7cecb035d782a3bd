/** What the server offers: models, agents, tools, prompts. Requested once, and again after a possible change. */

import * as api from "../api/calls";
import type { ServerPromptView } from "../api/generated";
import type { Agent, ConversationSettings, Group, Me, Model, Prompt, Provider, ToolInfo } from "../api/types";
import { withoutModels } from "../composer/models";
import { t } from "../i18n/words.svelte";
import { tell } from "./toasts.svelte";

class Catalog {
  me = $state.raw<Me | null>(null);
  /** Models that the server knows by name, then those of requested provider lists. */
  readonly models = $derived.by(() => {
    const names = new Set(this.known.map(({ name }) => name));
    return [...this.known, ...this.listed.filter(({ name }) => !names.has(name))];
  });
  private known = $state.raw<Model[]>([]);
  private listed = $state.raw<Model[]>([]);
  defaultModel = $state.raw<string | null>(null);
  providers = $state.raw<Provider[]>([]);
  /** A schema of options for each type of model. */
  options = $state.raw<Record<string, unknown>>({});
  agents = $state.raw<Agent[]>([]);
  groups = $state.raw<Group[]>([]);
  prompts = $state.raw<Prompt[]>([]);
  /** Prompts of MCP servers: requested when the user searches for one, because that can start the servers. */
  serverPrompts = $state.raw<ServerPromptView[]>([]);
  private groupsOf: string | null | undefined = undefined;
  /** Whether the user wanted more than the first screen shows. */
  private all = false;

  private readonly offered = $derived.by(() => {
    const byName = new Map<string, ToolInfo>();
    for (const { tools } of this.groups) for (const tool of tools) byName.set(tool.offered_as ?? tool.name, tool);
    return byName;
  });

  async load(): Promise<void> {
    this.me = await api.me();
    this.agents = this.me.agents;
    const [models, prompts] = await Promise.allSettled([api.models(!this.all), api.prompts()]);
    if (models.status === "fulfilled") {
      this.known = models.value.items;
      this.defaultModel = models.value.default;
      this.providers = models.value.providers;
      this.options = models.value.options;
      this.listed = this.listed.filter(({ name }) => this.providers.some((one) => one.ready && name.startsWith(`${one.name}/`)));
      // the component that needs it requests it again
      for (const { name } of withoutModels(this.providers, models.value.items)) void this.loadListOf(name).catch(() => undefined);
    } else tell(t().modelsFailed(String((models.reason as Error).message)), "error", { label: t().retry, run: this.reload });
    if (prompts.status === "fulfilled") this.prompts = prompts.value;
  }

  private readonly reload = (): void => void this.load().catch(() => undefined);

  /** Also load models that are not ready, and the descriptions of tools. */
  async loadAll(): Promise<void> {
    if (this.all) return;
    this.all = true;
    if (this.me === null) return; // the first load includes it
    await Promise.all([this.load(), this.groupsOf === null && this.loadTools(null, true)]).catch(() => (this.all = false));
  }

  /** A provider's list of models, kept for every model dialog. */
  async loadListOf(provider: string): Promise<void> {
    const { items } = await api.modelsOf(provider);
    this.listed = [...this.listed.filter((model) => !model.name.startsWith(`${provider}/`)), ...items];
  }

  async loadTools(conversation: string | null, again = false): Promise<void> {
    if (!again && this.groupsOf === conversation) return;
    this.groupsOf = conversation;
    try {
      const groups = await api.tools(conversation, !this.all && !again);
      if (this.groupsOf === conversation) this.groups = groups;
    } catch {
      this.groupsOf = undefined; // requested again with the next conversation
    }
  }

  async loadPrompts(): Promise<void> {
    this.prompts = await api.prompts();
  }

  async loadServerPrompts(): Promise<void> {
    this.serverPrompts = await api.serverPrompts().catch(() => this.serverPrompts);
  }

  /** The name of a tool in its group. The model can use another name for it. */
  tool(offeredAs: string): ToolInfo | undefined {
    return this.offered.get(offeredAs);
  }

  /** Whether a model can answer now. */
  ofType(type: Model["type"]): Model | undefined {
    return this.models.find((model) => model.ready && model.type === type);
  }

  /** The name of the model that answers with these settings. */
  modelOf(chosen: ConversationSettings): string | null {
    return chosen.model ?? this.me?.model?.name ?? this.defaultModel;
  }

  /** Whether it is the bundled model, which has a separate text on the first screen. */
  inTheBox(chosen: ConversationSettings): boolean {
    return this.modelOf(chosen) === "local/smollm2";
  }
}

export const catalog = new Catalog();
