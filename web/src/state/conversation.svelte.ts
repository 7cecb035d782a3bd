/** One conversation as the page shows it: fed by the live stream, read by the components. */

import { SvelteMap, SvelteSet } from "svelte/reactivity";

import * as api from "../api/calls";
import type { EventOf, LiveEvent, TurnEvent } from "../api/events";
import type { PresentUser } from "../api/generated";
import type { CallPart, FilePart, Json, Message, Question, Summary, Tree, Turn, Usage } from "../api/types";
import { rescue } from "../calls/unfinished";
import { saidIn, type Sentence } from "../i18n/format";
import { t } from "../i18n/words.svelte";
import { catalog } from "./catalog.svelte";
import { Fold } from "./fold";
import { perFrame } from "./frame";
import { list } from "./list.svelte";
import { ANSWER, isMe, rightsIn, TAKE_PART } from "./rights";
import { attempt } from "./toasts.svelte";
import { blocks, Branches } from "./tree";

export interface Progress {
  last: Json;
  log: string;
  /** Pieces of one output, which break their lines themselves; else each report is a line. */
  pieces: boolean;
}
/** A file of a reply on its way: a picture as it looks by now, or how many bytes of a sound are here. */
export interface Arriving {
  index: number;
  file: FilePart;
  bytes: number | null;
}
/** The provider is asked again, at this time in seconds; 0 where that is not known. */
export interface Retry {
  at: number;
  reason: Sentence;
}
export type TurnView = Turn & {
  usage?: Usage;
  error?: Sentence | null;
  /** The user who sent it: not always whose message it answers. */
  by?: string;
  /** The limit it ended at, in the server's words. */
  limit?: Sentence | null;
  retry?: Retry | null;
};
export interface Note {
  id: number;
  turn: string;
  text: Sentence;
}

const LOG_KEPT = 200_000;
const DOUBT = 1500; // milliseconds that the stream may be behind the list

export class ConversationView {
  summary = $state.raw<Summary | null>(null);
  loaded = $state(false);
  readonly messages = new SvelteMap<string, Message>();
  readonly turns = new SvelteMap<string, TurnView>();
  readonly questions = new SvelteMap<string, Question>();
  readonly progress = new SvelteMap<string, Progress>();
  /** By turn: files that are being made. */
  readonly arriving = new SvelteMap<string, Arriving[]>();
  /** Calls that the server said a client is to run. */
  readonly forClient = new SvelteSet<string>();
  notes = $state.raw<Note[]>([]);
  /** The message of the person that is being edited. */
  edited = $state<string | null>(null);
  /** Whether the next message is to have what came before summarized. */
  compact = false;
  /** How often something was said in this tab. */
  said = $state(0);
  /** The message that a search led to: shown, and brought into view. */
  sought = $state<string | null>(null);
  /** When the stream last told something of a turn, in seconds. */
  readonly heard = new Map<string, number>();
  /** What was sent and no turn has taken yet. */
  queue = $state.raw<Pick<Tree, "queued" | "steering">>({ queued: [], steering: [] });
  /** The users who have it open, if it is shared. */
  present = $state.raw<PresentUser[]>([]);

  private shape = $state(0);
  private branches = new Branches();
  private folding: Fold;
  private dirty = new Set<string>();
  private noteCount = 0;
  private refetching = false;
  private doubt: ReturnType<typeof setTimeout> | undefined;
  private readonly flushSoon = perFrame(() => this.flush());

  constructor(readonly id: string) {
    this.folding = this.newFold();
  }

  // ── what components read ──────────────────────────────────────────────────────────────────────────

  private readonly line = $derived.by(() => this.summary ?? list.known.get(this.id));
  readonly shared = $derived.by(() => (this.line ? this.line.shared || (catalog.me !== null && !isMe(this.line.owner)) : false));
  readonly rights = $derived.by(() => rightsIn(this.line));
  readonly mayAnswer = $derived(this.rights >= ANSWER);
  readonly mayTakePart = $derived(this.rights >= TAKE_PART);

  /** Who sent something: an unnamed one is the owner's. */
  sender(by: string | null | undefined): string {
    return by ?? this.line?.owner ?? "";
  }

  /** Who sent what a turn works on. */
  senderOf(turn: string): string {
    const known = this.turns.get(turn);
    return known?.by || this.sender(this.messages.get(known?.message ?? "")?.by);
  }

  /** A turn that answers a message again may be another user's than the message. */
  private async learnSender(turn: string): Promise<void> {
    if (!this.shared) return;
    const by = await api.turn(turn).then((found) => found.by, () => undefined);
    if (by) this.changeTurn(turn, { by });
  }

  /** Whether a turn runs with your rules. */
  isMine(turn: string): boolean {
    return !this.shared || isMe(this.senderOf(turn));
  }

  readonly path = $derived.by(() => {
    void this.shape;
    const leaf = this.summary?.leaf;
    return this.branches.path(leaf && this.branches.has(leaf) ? this.branches.tip(leaf) : this.branches.newest());
  });

  readonly blocks = $derived.by(() => blocks(this.path, (id) => this.kinds.get(id)));

  /** Live turns that work on what is shown. */
  readonly live = $derived.by(() => {
    const shown = new Set(this.path);
    return [...this.turns.values()].filter((turn) => turn.live && (shown.has(turn.message) || !this.branches.has(turn.message)));
  });

  readonly running = $derived(this.live.at(-1) ?? null);

  /** The limit that the last turn shown ended at: null where there was none, "" where it is not known which. */
  readonly limit = $derived.by(() => {
    const turn = this.messages.get(this.path.at(-1) ?? "")?.turn;
    if (!turn || this.running) return null;
    const ended = this.turns.get(turn);
    return ended ? ended.limit || null : this.limitOf(turn);
  });

  /** After a reload its answer tells; where there is none, its calls tell that there was a limit. */
  private limitOf(turn: string): Sentence | null {
    const messages = this.path.flatMap((id) => this.messages.get(id) ?? []).filter((message) => message.turn === turn);
    const told = messages.at(-1)?.metadata;
    if (told?.["limit"]) return saidIn(told as { limit: string }, "limit");
    return messages.some(({ parts }) => parts.some((part) => part.type === "call" && part.state === "skipped")) ? "" : null;
  }

  /** Roles do not change, so blocks need not look at messages that are being written. */
  private kinds = new Map<string, Pick<Message, "role" | "author">>();

  versions(id: string): string[] {
    void this.shape;
    return [...this.branches.versions(id)]; // a list that grows in place looks unchanged to who derives from it
  }

  /** The messages of an answer on its own branch, from this one until a person says something. */
  answerFrom(id: string): string[] {
    void this.shape;
    const path = this.branches.path(this.branches.tip(id));
    return blocks(path, (one) => this.kinds.get(one)).find((block) => block.ids.includes(id))?.ids ?? [];
  }

  /** What the program of a call has called so far. */
  innerOf(call: string): CallPart[] {
    for (const { inner } of this.messages.values()) {
      const made = (inner ?? []).filter(({ made_in }) => made_in?.call === call);
      if (made.length) return made;
    }
    return [];
  }

  questionsOf(call: string): Question[] {
    return [...this.questions.values()].filter((question) => question.call === call);
  }

  // ── what the stream tells ─────────────────────────────────────────────────────────────────────────

  take(event: LiveEvent): void {
    switch (event.type) {
      case "snapshot":
        this.replace(event);
        break;
      case "conversation.changed":
        if (event.id === this.id) this.changed(event);
        break;
      case "queue.changed":
        this.queue = event;
        break;
      case "presence":
        this.present = event.users;
        break;
      case "conversation.deleted":
      case "list.reset":
        break;
      default:
        this.takeTurn(event);
    }
  }

  /** The list may know more than the stream told: then the whole is fetched anew. */
  private changed(summary: Summary): void {
    this.summary = summary;
    clearTimeout(this.doubt);
    const missed = (): boolean => {
      const { leaf = null, live = false } = this.summary ?? {};
      return (leaf !== null && !this.branches.has(leaf)) || (!live && this.running !== null);
    };
    if (!missed()) return;
    this.doubt = setTimeout(() => {
      if (missed()) void attempt(async () => this.replace(await api.tree(this.id)));
    }, DOUBT);
  }

  replace(tree: Tree): void {
    const lost = this.lostReply(tree);
    const asked = [...this.questions.keys()];
    this.branches = new Branches();
    this.kinds.clear();
    this.messages.clear();
    this.turns.clear();
    this.questions.clear();
    this.progress.clear();
    this.arriving.clear();
    this.dirty.clear();
    this.folding = this.newFold();
    for (const message of tree.messages) this.put(message);
    for (const id of asked) if (!tree.questions.some((question) => question.id === id)) rescue(id);
    for (const turn of tree.turns) {
      const reason = saidIn(turn, "retrying");
      this.turns.set(turn.id, { ...turn, retry: reason ? { at: 0, reason } : null });
      if (turn.arriving) this.arrives(turn.id, turn.arriving);
    }
    for (const question of tree.questions) this.questions.set(question.id, question);
    this.queue = tree;
    this.summary = tree.conversation;
    this.loaded = true;
    for (const { id } of tree.turns) void this.learnSender(id);
    this.shape++;
    if (lost) this.note(lost, t().writtenAnew);
  }

  /** The turn whose reply was read in part and is not in the snapshot: the server stopped, and asks for it anew. */
  private lostReply(tree: Tree): string | null {
    const known = new Set(tree.messages.map(({ id }) => id));
    const begun = [...this.messages.values()].find(
      ({ id, role, finish, parts }) => role === "assistant" && !finish && parts.length > 0 && !known.has(id),
    );
    return tree.turns.find(({ id }) => id === begun?.turn)?.id ?? null;
  }

  private note(turn: string, text: Sentence): void {
    if (text) this.notes = [...this.notes.slice(-20), { id: ++this.noteCount, turn, text }];
  }

  /** A message that this page knows before the stream tells of it. */
  put(message: Message): void {
    this.kinds.set(message.id, { role: message.role, author: message.author });
    if (this.branches.add(message.id, message.parent)) this.shape++;
    this.messages.set(message.id, message);
    this.folding.know(message);
  }

  /** Answered, by us or somebody else: the stream will tell, too. */
  settle(question: string): void {
    this.questions.delete(question);
  }

  private takeTurn(event: TurnEvent): void {
    const { turn } = event;
    this.heard.set(turn, Date.now() / 1000);
    if (this.turns.get(turn)?.retry) this.changeTurn(turn, { retry: null }); // whatever comes next, the wait is over
    switch (event.type) {
      case "turn.start":
        this.began(turn, event.message);
        break;
      case "turn.state":
        this.changeTurn(turn, { state: event.state });
        break;
      case "turn.end":
        this.ended(turn, event);
        break;
      case "step.start":
        this.arriving.delete(turn);
        if (event.parent !== null && !this.branches.has(event.parent)) void this.refetch();
        break;
      case "file.partial":
        this.arrives(turn, event);
        break;
      case "file.added":
        this.arriving.set(turn, (this.arriving.get(turn) ?? []).slice(1));
        break;
      case "step.retry":
        this.arriving.delete(turn);
        this.changeTurn(turn, { retry: { at: Date.now() / 1000 + event.seconds, reason: saidIn(event, "reason") } });
        break;
      case "step.model":
        this.note(turn, saidIn(event, "reason"));
        break;
      case "message.added":
        this.flush();
        this.put(event.message);
        break;
      case "notice":
        if (event.kind === "title") break; // the summary brings it
        if (event.kind === "source") void catalog.loadTools(this.id, true); // it is told at the tools
        else this.note(turn, saidIn(event, "text"));
        break;
      case "call.asked":
        if (event.whole) this.questions.set(event.question, event.whole);
        else void this.refetchQuestions();
        break;
      case "call.answered":
        rescue(event.question);
        this.questions.delete(event.question);
        break;
      case "call.start":
        if (event.client) this.forClient.add(event.call);
        this.forgetQuestions((question) => question.call === event.call);
        break;
      case "call.progress":
        this.report(event.call, event.value);
        break;
      case "call.end":
        this.forClient.delete(event.call);
        this.forgetQuestions((question) => question.call === event.call);
        break;
    }
    const changed = this.folding.apply(event);
    if (changed !== null) {
      this.dirty.add(changed);
      this.flushSoon();
    }
  }

  private flush(): void {
    for (const id of this.dirty) {
      const message = this.folding.message(id);
      if (!message) continue;
      this.kinds.set(id, { role: message.role, author: message.author });
      this.messages.set(id, message);
      if (this.branches.add(id, message.parent)) this.shape++;
    }
    this.dirty.clear();
  }

  private began(turn: string, message: string): void {
    const known = this.turns.get(turn);
    const state = known && !["queued", "interrupted"].includes(known.state) ? known.state : "preparing";
    const fresh = { id: turn, message, started: Date.now() / 1000, retrying: null, arriving: null };
    this.turns.set(turn, { ...fresh, ...known, state, live: true });
    if (!this.branches.has(message)) void this.refetch();
    void this.learnSender(turn);
  }

  private ended(turn: string, event: EventOf<"turn.end">): void {
    this.flush();
    this.arriving.delete(turn);
    const { state, usage } = event;
    this.changeTurn(turn, { state, live: false, usage, error: saidIn(event, "error"), limit: saidIn(event, "limit") });
    this.forgetQuestions((question) => question.turn === turn);
  }

  private changeTurn(id: string, changes: Partial<TurnView>): void {
    const turn = this.turns.get(id);
    if (turn) this.turns.set(id, { ...turn, ...changes });
  }

  private forgetQuestions(which: (question: Question) => boolean): void {
    for (const question of this.questions.values()) if (which(question)) this.questions.delete(question.id);
  }

  /** A newer picture takes the place of the one before; a piece of sound adds to what is here. */
  private arrives(turn: string, { file, index, offset }: Pick<EventOf<"file.partial">, "file" | "index" | "offset">): void {
    const others = (this.arriving.get(turn) ?? []).filter((one) => one.index !== index);
    const bytes = offset === null ? null : offset + (file.size ?? 0);
    this.arriving.set(turn, [...others, { index, file, bytes }].sort((one, other) => one.index - other.index));
  }

  private report(call: string, value: Json): void {
    const { log, pieces: before } = this.progress.get(call) ?? { log: "", pieces: false };
    const text = typeof value === "string" ? value : "";
    const pieces = before || /[\r\n]/.test(text);
    const between = log && text && !pieces ? "\n" : "";
    this.progress.set(call, { last: value, log: (log + between + text).slice(-LOG_KEPT), pieces });
  }

  // ── what the stream left out ──────────────────────────────────────────────────────────────────────

  /** Messages that the page has not heard of, without touching those that are being written. */
  private async refetch(): Promise<void> {
    if (this.refetching) return;
    this.refetching = true;
    try {
      const tree = await api.tree(this.id);
      for (const message of tree.messages) if (!this.messages.has(message.id)) this.put(message);
      this.flush();
      this.shape++;
    } catch {
      // the stream's next snapshot will bring them
    } finally {
      this.refetching = false;
    }
  }

  private async refetchQuestions(): Promise<void> {
    try {
      for (const question of await api.questions(this.id)) this.questions.set(question.id, question);
    } catch {
      // shown with the next snapshot
    }
  }

  private newFold(): Fold {
    return new Fold(this.id, (id) => this.messages.get(id));
  }
}
