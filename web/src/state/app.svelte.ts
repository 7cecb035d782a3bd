/** Where the person is: which conversation is shown, which dialog is open, and what they asked for. */

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
/** Those about the conversation that is shown: they close when it is gone. */
const ABOUT_IT: DialogName[] = ["models", "tools", "trace", "compare", "review", "context", "share"];
export type SettingsTab = "general" | "setup" | "permissions" | "prompts" | "usage" | "help";

/** Versions of an answer to be seen side by side. */
export interface Compared {
  view: ConversationView;
  /** One of them, by the message it begins with: it tells which others there are. */
  answer: string;
  /** Those to begin with; one that a model was asked for may not be there yet. */
  sides: (string | AskedModel)[];
}

const words = (parts: { type: string; text?: string }[]): string => parts.map(({ text }) => text ?? "").join("");

/** The answer to a request can be lost where the request was not. */
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
  /** Whether pieces of the page could not be loaded; how often they are asked for again. */
  lacking = false;
  returns = $state(0);
  /** Words for the message field that somebody clicked on. */
  suggested = $state<string | null>(null);
  /** Where something that could not be sent has been put back: the key of a draft. */
  returned = $state<string | null>(null);
  /** The token of an invitation that somebody opened: kept while they sign in. */
  invitation = $state<string | null>(null);
  /** A file of a message that somebody wants to say something about. */
  attached = $state.raw<FilePart | null>(null);
  /** Settings chosen before there is a conversation to keep them. */
  planned = $state<ConversationSettings>({});
  /** Deletions that may still be taken back. */
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

  /** What follows # in the address is not sent to the server, nor kept in the history. */
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
    if (catalog.me?.user === "local" && catalog.me.model === null && catalog.defaultModel === null) this.openSettings("setup"); // nothing can answer yet
  }

  private fromAddress(): string | null {
    return /^\/c\/([^/]+)/.exec(location.pathname.slice(basePath.length))?.[1] ?? null;
  }

  /** `found`: the message to be shown there, instead of the end. */
  show(id: string | null, push = true, found: string | null = null): void {
    // Asked for before anything is drawn: the answer comes meanwhile.
    live.open(id, (event) => this.take(event), () => this.reload(), () => void (this.current?.loaded && this.gone(this.current.id)));
    this.drawer = false;
    const address = withBase(id === null ? "/" : `/c/${id}`);
    if (push && location.pathname !== address) history.pushState(null, "", address);
    this.current = id === null ? null : new ConversationView(id);
    if (this.current) this.current.sought = found;
    if (id === null) {
      this.planned = this.usual();
      void this.put(drafts.plan(), false); // what was chosen for it
    } else this.keep(id);
    void catalog.loadTools(id);
    void inbox.load(); // between two streams, something may go untold
  }

  /** What a new conversation begins with. */
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

  /** It was deleted, or is not shared with you any more. */
  private gone(id: string): void {
    if (this.current?.id === id) {
      this.leave(id);
      if (ABOUT_IT.includes(this.dialog)) this.dialog = "none";
      if (!list.hidden.has(id)) tell(t().goneTitle);
    }
    list.drop(id);
    void inbox.load(); // its tasks went with it
  }

  /** It was deleted: what was being written goes on elsewhere. */
  leave(id: string): void {
    drafts.move(id, "new");
    this.show(null);
  }

  // ── saying something ──────────────────────────────────────────────────────────────────────────────

  /** A running turn is steered, or the message waits in line. Null where it was taken, else where it belongs now: the id of a
   * conversation, or "new". `agent`: who answers this message alone, instead of the conversation's agent. */
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
        if (error instanceof Problem && error.status === 409 && !running) { // another tab was faster: this one comes next
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

  /** A conversation whose first message was refused: there is nothing in it. False where that is not so. */
  private async withdraw({ id }: ConversationView, plan: Changes): Promise<boolean> {
    try {
      if ((await api.tree(id)).messages.length) return false;
      list.hidden.set(id, true);
      await api.drop(id);
    } catch {
      list.hidden.delete(id);
      return false; // the server cannot be reached: what is there stays
    }
    list.drop(id);
    drafts.move(id, "new");
    drafts.setPlan(plan);
    if (this.current === null || this.current.id === id) this.show(null);
    return true;
  }

  /** False where the turn was over before it could hear, or is another user's: only its sender steers it. */
  private async steer(turn: string, parts: api.Said): Promise<boolean> {
    try {
      await api.steer(turn, parts);
      return true;
    } catch (error) {
      if (error instanceof Problem && (error.status === 409 || error.status === 403)) return false;
      throw error;
    }
  }

  /** It is followed before anything is said in it, so that nothing is missed, and needs no loading: it is empty. */
  private async begin(): Promise<ConversationView> {
    const made = await api.create($state.snapshot(this.planned) as ConversationSettings);
    list.put(made);
    drafts.move("new", made.id); // what was typed since
    drafts.setPlan({});
    this.show(made.id);
    const view = this.current as ConversationView;
    view.summary = made;
    view.loaded = true;
    return view;
  }

  /** The stream tells of it, too; this is sooner. */
  private took(view: ConversationView, begun: Begun, parts: api.Said): void {
    const id = begun.message;
    if (!id || !view.loaded || view.running || view.messages.has(id)) return;
    const parent = view.path.at(-1) ?? null;
    view.put({ ...emptyMessage(id, view.id, parent, "user", begun.turn), parts: parts.map(whole) });
  }

  /** Several turns, where several models answer at once. */
  async stop(): Promise<void> {
    const turns = this.current?.mayTakePart ? this.current.live : [];
    await attempt(() => Promise.all(turns.map((turn) => api.cancel(turn.id))));
  }

  // ── a conversation as a whole ─────────────────────────────────────────────────────────────────────

  /** `usual`: a new conversation begins with this model, too. */
  async choose(changes: Changes, usual = true): Promise<void> {
    await attempt(() => this.put(changes, usual));
  }

  /** The same; what goes wrong is thrown. */
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

  /** An answer may come after later news: what the stream has told since holds. */
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

  /** Hidden at once, gone after some seconds: until then it can be taken back. */
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

  /** Who takes the deletion back, or goes back to it, may say something there. */
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

  /** The page is being closed, or left: what was deleted stays deleted. */
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
