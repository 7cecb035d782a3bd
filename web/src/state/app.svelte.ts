/** The state of the web UI: the current conversation, the open dialog, and the user's requests. */

import * as api from "../api/calls";
import { onSignedOut, Problem } from "../api/client";
import type { LiveEvent } from "../api/events";
import type { Begun, ConversationChange } from "../api/generated";
import type { ConversationSettings, FilePart, JsonObject, Part } from "../api/types";
import { basePath, withBase } from "../basePath";
import { type Changes, drafts } from "../composer/drafts";
import { isKnown } from "../composer/models";
import { t } from "../i18n/words.svelte";
import { catalog } from "./catalog.svelte";
import { ConversationView } from "./conversation.svelte";
import { emptyMessage } from "./fold";
import { inbox } from "./inbox.svelte";
import { list } from "./list.svelte";
import { live } from "./live.svelte";
import { isMe } from "./rights";
import type { AskedModel } from "./several.svelte";
import { keep, settings } from "./settings.svelte";
import { attempt, tell } from "./toasts.svelte";

export type DialogName = "settings" | "inbox" | "models" | "palette" | "files" | "tools" | "trace" | "evaluations" | "compare" | "review" | "context" | "share" | "none";
/** Dialogs about the current conversation: they close when it is deleted. */
const ABOUT_IT: DialogName[] = ["models", "tools", "trace", "compare", "review", "context", "share"];
export type SettingsTab = "general" | "setup" | "permissions" | "prompts" | "usage" | "help";

/** Versions of an answer to be seen side by side. */
export interface Compared {
  view: ConversationView;
  /** One of the versions, as the ID of its first message: it determines the others. */
  answer: string;
  /** The initial versions. One that was requested from a model can be missing at first. */
  sides: (string | AskedModel)[];
}

const words = (parts: { type: string; text?: string }[]): string => parts.map(({ text }) => text ?? "").join("");

/** The response to a request can be lost even if the request arrived. */
async function arrived(id: string, said: api.Said, known: Set<string>): Promise<boolean> {
  const { messages } = await api.tree(id);
  return messages.some((one) => one.role === "user" && !known.has(one.id) && words(one.parts) === words(said));
}

class App {
  current = $state.raw<ConversationView | null>(null);
  signedIn = $state<"unknown" | "yes" | "no">("unknown");
  dialog = $state<DialogName>("none");
  settingsTab = $state<SettingsTab>("general");
  /** The turn whose trace is shown. */
  traced = $state<string | null>(null);
  compared = $state.raw<Compared | null>(null);
  drawer = $state(false);
  /** Whether parts of the web UI could not be loaded, and how often they were requested again. */
  lacking = false;
  returns = $state(0);
  /** The suggested text that the user clicked, for the message field. */
  suggested = $state<string | null>(null);
  /** The key of the draft that received text or files that could not be sent. */
  returned = $state<string | null>(null);
  /** The token of an invitation that the user opened, kept during the sign-in. */
  invitation = $state<string | null>(null);
  /** A file of a message that the user wants to attach to another message. */
  attached = $state.raw<FilePart | null>(null);
  /** Settings chosen before there is a conversation to keep them. */
  planned = $state<ConversationSettings>({});
  /** Deletions that can still be undone. */
  private pending = new Map<string, ReturnType<typeof setTimeout>>();

  readonly chosen = $derived<ConversationSettings>(this.current?.summary?.settings ?? this.planned);

  async start(): Promise<void> {
    onSignedOut(() => (this.signedIn = "no"));
    live.watchVisibility();
    window.addEventListener("popstate", () => ((this.dialog = "none"), this.show(this.fromAddress(), false)));
    window.addEventListener("pagehide", () => void this.deleteNow());
    window.addEventListener("hashchange", () => this.takeInvitation());
    this.takeInvitation();
    await this.enter();
  }

  /** The part after # in the address is neither sent to the server nor kept in the history. */
  private takeInvitation(): void {
    const token = /^#invitation=([\w-]+)$/.exec(location.hash)?.[1];
    if (!token) return;
    history.replaceState(history.state, "", location.pathname);
    drafts.set("invitation", token);
    if (this.signedIn === "yes") this.invitation = token;
  }

  /** After a launch link, a cookie or a password. */
  async enter(): Promise<void> {
    try {
      await catalog.load();
      this.signedIn = "yes";
      this.invitation = drafts.get("invitation");
    } catch (error) {
      if (this.signedIn !== "no") tell(error instanceof Error ? error.message : String(error), "error");
      if (this.signedIn === "unknown") setTimeout(() => void this.enter(), 1500);
      return;
    }
    void attempt(() => list.load());
    this.show(this.fromAddress(), false);
    // no model can answer yet
    if (catalog.me?.user === "local" && catalog.me.model === null && catalog.defaultModel === null) this.openSettings("setup");
  }

  private fromAddress(): string | null {
    return /^\/c\/([^/]+)/.exec(location.pathname.slice(basePath.length))?.[1] ?? null;
  }

  /** `found`: the message to scroll to instead of the end. */
  show(id: string | null, push = true, found: string | null = null): void {
    // Request it before rendering: the response arrives meanwhile.
    live.open(id, (event) => this.take(event), () => this.reload(), () => void (this.current?.loaded && this.gone(this.current.id)));
    this.drawer = false;
    const address = withBase(id === null ? "/" : `/c/${id}`);
    if (push && location.pathname !== address) history.pushState(null, "", address);
    this.current = id === null ? null : new ConversationView(id);
    if (this.current) this.current.sought = found;
    if (id === null) {
      this.planned = this.usual();
      void this.put(drafts.plan(), false); // the choices for it
    } else this.keep(id);
    void catalog.loadTools(id);
    void inbox.load(); // events can be lost between two streams
  }

  /** The settings of a new conversation. */
  private usual(): ConversationSettings {
    const { begins } = settings;
    const model = begins === "last" ? settings.model : begins === "server" ? null : begins;
    return model !== null && isKnown(model, catalog.models, catalog.providers) ? { model } : {};
  }

  private reload(): void {
    if (this.lacking) this.returns++;
    this.lacking = false;
    void attempt(() => list.load());
    void inbox.load();
  }

  private take(event: LiveEvent): void {
    if (event.type === "conversation.changed") {
      const { type: _, ...item } = event;
      if (item.waiting || list.known.get(item.id)?.waiting) inbox.soon(item.id);
      list.put(item);
    } else if (event.type === "conversation.deleted") {
      this.gone(event.id);
    } else if (event.type === "list.reset") {
      this.reload();
    } else if (event.type === "snapshot") {
      const { id, owner } = event.conversation;
      list.put(event.conversation);
      if (!isMe(owner) && !list.known.get(id)?.role) void attempt(async () => list.put(await api.conversation(id)));
    }
    this.current?.take(event);
  }

  /** The conversation was deleted, or you no longer have access. */
  private gone(id: string): void {
    if (this.current?.id === id) {
      this.leave(id);
      if (ABOUT_IT.includes(this.dialog)) this.dialog = "none";
      if (!list.hidden.has(id)) tell(t().goneTitle);
    }
    list.drop(id);
    void inbox.load(); // its tasks are deleted with it
  }

  /** The conversation was deleted: its draft moves to a new one. */
  leave(id: string): void {
    drafts.move(id, "new");
    this.show(null);
  }

  // ── sending ───────────────────────────────────────────────────────────────────────────────────────

  /** Send a message: it steers the running turn or is queued. Return null if it was taken, else the key of its
   * draft: the ID of a conversation, or "new". `agent`: the agent that answers only this message, instead of the
   * conversation's agent. */
  async say(parts: api.Said, queue: boolean, options: JsonObject = {}, agent: string | null = null): Promise<string | null> {
    const plan = drafts.plan();
    const before = this.current;
    let view = before;
    const done = await attempt(async () => {
      view ??= await this.begin();
      const running = view.running;
      if (running && !queue && view.isMine(running.id) && (await this.steer(running.id, parts))) return true;
      const known = new Set(view.messages.keys());
      try {
        this.took(view, await api.send(view.id, parts, { options, agent, compact: view.compact, ...(running ? { queue: true } : {}) }), parts);
        view.compact = false;
      } catch (error) {
        if (error instanceof Problem && error.status === 409 && !running) { // another tab was faster: queue this message
          this.took(view, await api.send(view.id, parts, { options, agent, queue: true }), parts);
          return true;
        }
        if (!(error instanceof Problem && !error.status && (await arrived(view.id, parts, known)))) throw error;
      }
      return true;
    });
    if (done && view) (view as ConversationView).said++;
    if (done) return null;
    if (before || !view) return before?.id ?? "new";
    return (await this.withdraw(view, plan)) ? "new" : (view as ConversationView).id;
  }

  /** Delete a conversation whose first message was refused. Return false if it has messages. */
  private async withdraw({ id }: ConversationView, plan: Changes): Promise<boolean> {
    try {
      if ((await api.tree(id)).messages.length) return false;
      list.hidden.set(id, true);
      await api.drop(id);
    } catch {
      list.hidden.delete(id);
      return false; // the server is unreachable: keep the current state
    }
    list.drop(id);
    drafts.move(id, "new");
    drafts.setPlan(plan);
    if (this.current === null || this.current.id === id) this.show(null);
    return true;
  }

  /** Return false if the turn has already ended, or is another user's: only its sender can steer it. */
  private async steer(turn: string, parts: api.Said): Promise<boolean> {
    try {
      await api.steer(turn, parts);
      return true;
    } catch (error) {
      if (error instanceof Problem && (error.status === 409 || error.status === 403)) return false;
      throw error;
    }
  }

  /** Follow the conversation before the first message, so that no event is missed. It is empty and needs no loading. */
  private async begin(): Promise<ConversationView> {
    const made = await api.create($state.snapshot(this.planned) as ConversationSettings);
    list.put(made);
    drafts.move("new", made.id); // text typed since
    drafts.setPlan({});
    this.show(made.id);
    const view = this.current as ConversationView;
    view.summary = made;
    view.loaded = true;
    return view;
  }

  /** The stream reports the message, too, but later. */
  private took(view: ConversationView, begun: Begun, parts: api.Said): void {
    const id = begun.message;
    if (!id || !view.loaded || view.running || view.messages.has(id)) return;
    const parent = view.path.at(-1) ?? null;
    view.put({ ...emptyMessage(id, view.id, parent, "user", begun.turn), parts: parts.map(whole) });
  }

  /** Several turns can run if several models answer at the same time. */
  async stop(): Promise<void> {
    const turns = this.current?.mayTakePart ? this.current.live : [];
    await attempt(() => Promise.all(turns.map((turn) => api.cancel(turn.id))));
  }

  // ── a conversation as a whole ─────────────────────────────────────────────────────────────────────

  /** `usual`: new conversations start with this model, too. */
  async choose(changes: Changes, usual = true): Promise<void> {
    await attempt(() => this.put(changes, usual));
  }

  /** The same, but throws errors. */
  async put(changes: Changes, usual = true): Promise<void> {
    const view = this.current;
    const remember = (): void => {
      const { model } = changes;
      if (model) keep({ recent: [model, ...settings.recent.filter((name) => name !== model)].slice(0, 5) });
      if (model !== undefined && usual) keep({ model });
    };
    if (!view) {
      remember();
      const planned = { ...this.planned, ...changes } as Record<string, unknown>;
      for (const key of Object.keys(planned)) if (planned[key] === null) delete planned[key];
      this.planned = planned as ConversationSettings;
      return drafts.setPlan({ ...drafts.plan(), ...changes });
    }
    await this.change(view.id, { settings: changes });
    remember();
    if ("tools" in changes || "agent" in changes) await catalog.loadTools(view.id, true);
  }

  /** A response can arrive after later events: what the stream has reported since is valid. */
  private async change(id: string, changes: ConversationChange): Promise<true> {
    const before = list.known.get(id);
    const changed = await api.change(id, changes);
    if (list.known.get(id) === before) {
      list.put(changed);
      if (this.current?.id === id) this.current.summary = changed;
    }
    return true;
  }

  async rename(id: string, title: string): Promise<void> {
    await attempt(() => this.change(id, { title }));
  }

  async label(id: string, labels: Pick<ConversationChange, "pinned" | "archived" | "tags">): Promise<void> {
    if (!(await attempt(() => this.change(id, labels)))) return;
    if (labels.tags) void attempt(() => list.load());
    if (labels.archived) tell(t().archived, "note", { label: t().undo, run: () => void this.label(id, { archived: false }) });
  }

  async switchTo(leaf: string): Promise<void> {
    const view = this.current;
    if (view) await attempt(() => this.change(view.id, { leaf }));
  }

  async fork(message: string, ownFolder = false): Promise<void> {
    const view = this.current;
    if (!view) return;
    const made = await attempt(() => api.fork(view.id, message, ownFolder));
    if (!made) return;
    list.put(made);
    this.show(made.id);
    if (made.title) void this.rename(made.id, t().copyOf(made.title));
    tell(t().forked, "note", { label: t().backToOriginal, run: () => this.show(view.id) }, 8);
  }

  /** Hide it immediately and delete it after some seconds: until then the user can undo it. */
  deleteSoon(id: string): void {
    const wasShown = this.current?.id === id;
    list.hidden.set(id, true);
    if (wasShown) this.show(null);
    const timer = setTimeout(() => this.deleteFor(id), 6000);
    this.pending.set(id, timer);
    tell(t().deleted, "note", {
      label: t().undo,
      run: () => (wasShown ? this.show(id) : this.keep(id)),
    }, 6);
  }

  /** Cancel the deletion: the user undid it, or opened the conversation again and can send messages. */
  private keep(id: string): void {
    if (!this.pending.has(id)) return;
    clearTimeout(this.pending.get(id));
    this.pending.delete(id);
    list.hidden.delete(id);
  }

  private async deleteFor(id: string): Promise<void> {
    clearTimeout(this.pending.get(id));
    this.pending.delete(id);
    const gone = await attempt(async () => (await api.drop(id), true));
    if (gone) list.drop(id);
    else list.hidden.delete(id);
  }

  /** The web UI is being closed: complete the pending deletions. */
  async deleteNow(): Promise<void> {
    await Promise.all([...this.pending.keys()].map((id) => this.deleteFor(id)));
  }

  open(dialog: DialogName): void {
    this.drawer = false;
    this.dialog = dialog;
  }

  share(id: string): void {
    if (this.current?.id !== id) this.show(id);
    this.open("share");
  }

  openTrace(turn: string): void {
    this.traced = turn;
    this.open("trace");
  }

  compare(compared: Compared): void {
    this.compared = compared;
    this.open("compare");
  }

  openSettings(tab: SettingsTab = "general"): void {
    this.settingsTab = tab;
    this.open("settings");
  }
}

export const app = new App();

function whole(part: api.Said[number]): Part {
  return part.type === "text" ? { citations: [], phase: null, ...part } : part;
}
