/** What the server offers: models, agents, tools, prompts. Asked for once, and again where it may have changed. */

import * as api from "../api/calls";
import type { ServerPromptView } from "../api/generated";
import type { Agent, ConversationSettings, Group, Me, Model, Prompt, Provider, ToolInfo } from "../api/types";
import { withoutModels } from "../composer/models";
import { t } from "../i18n/words.svelte";
import { tell } from "./toasts.svelte";

class Catalog {
  me = $state.raw<Me | null>(null);
  /** Those that the server knows by name, then those of providers' own lists that were asked for. */
  readonly models = $derived.by(() => {
    const names = new Set(this.known.map(({ name }) => name));
    return [...this.known, ...this.listed.filter(({ name }) => !names.has(name))];
  });
  private known = $state.raw<Model[]>([]);
  private listed = $state.raw<Model[]>([]);
  defaultModel = $state.raw<string | null>(null);
  providers = $state.raw<Provider[]>([]);
  /** By type of model, a schema of its options. */
  options = $state.raw<Record<string, unknown>>({});
  agents = $state.raw<Agent[]>([]);
  groups = $state.raw<Group[]>([]);
  prompts = $state.raw<Prompt[]>([]);
  /** Of MCP servers: asked for when somebody looks for a prompt, since that may start them. */
  serverPrompts = $state.raw<ServerPromptView[]>([]);
  private groupsOf: string | null | undefined = undefined;
  /** Whether somebody wanted more than the first screen shows. */
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
      for (const { name } of withoutModels(this.providers, models.value.items)) void this.loadListOf(name).catch(() => undefined); // asked again by who wants it
    } else tell(t().modelsFailed(String((models.reason as Error).message)), "error", { label: t().retry, run: this.reload });
    if (prompts.status === "fulfilled") this.prompts = prompts.value;
  }

  private readonly reload = (): void => void this.load().catch(() => undefined);

  /** Also models that lack something, and what tools are for. */
  async loadAll(): Promise<void> {
    if (this.all) return;
    this.all = true;
    if (this.me === null) return; // the first load brings it
    await Promise.all([this.load(), this.groupsOf === null && this.loadTools(null, true)]).catch(() => (this.all = false));
  }

  /** What a provider says it has, kept for every list of models. */
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
      this.groupsOf = undefined; // asked again with the next conversation
    }
  }

  async loadPrompts(): Promise<void> {
    this.prompts = await api.prompts();
  }

  async loadServerPrompts(): Promise<void> {
    this.serverPrompts = await api.serverPrompts().catch(() => this.serverPrompts);
  }

  /** The name under which a group knows a tool that the model calls by another. */
  tool(offeredAs: string): ToolInfo | undefined {
    return this.offered.get(offeredAs);
  }

  /** A model that can be asked now. */
  ofType(type: Model["type"]): Model | undefined {
    return this.models.find((model) => model.ready && model.type === type);
  }

  /** The name of the model that answers under these settings. */
  modelOf(chosen: ConversationSettings): string | null {
    return chosen.model ?? this.me?.model?.name ?? this.defaultModel;
  }

  /** Whether it is the small one that comes along, which has words of its own on the first screen. */
  inTheBox(chosen: ConversationSettings): boolean {
    return this.modelOf(chosen) === "local/smollm2";
  }
}

export const catalog = new Catalog();
