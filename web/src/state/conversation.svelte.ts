/** The client state of one conversation: the live stream updates it, components read it. */

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
  /** Whether the reports are chunks of one output with line breaks; otherwise each report is a line. */
  pieces: boolean;
}
/** A file of a reply in progress: the current state of an image, or the number of received bytes of a sound. */
export interface Arriving {
  index: number;
  file: FilePart;
  bytes: number | null;
}
/** The time in seconds of the next request to the provider; 0 if it is not known. */
export interface Retry {
  at: number;
  reason: Sentence;
}
export type TurnView = Turn & {
  usage?: Usage;
  error?: Sentence | null;
  /** The user who sent it: not always the author of the message that it answers. */
  by?: string;
  /** The limit at which it ended, as the server's sentence. */
  limit?: Sentence | null;
  retry?: Retry | null;
};
export interface Note {
  id: number;
  turn: string;
  text: Sentence;
}

const LOG_KEPT = 200_000;
const DOUBT = 1500; // milliseconds that the stream can lag behind the list

export class ConversationView {
  summary = $state.raw<Summary | null>(null);
  loaded = $state(false);
  readonly messages = new SvelteMap<string, Message>();
  readonly turns = new SvelteMap<string, TurnView>();
  readonly questions = new SvelteMap<string, Question>();
  readonly progress = new SvelteMap<string, Progress>();
  /** Files that are being generated, by turn. */
  readonly arriving = new SvelteMap<string, Arriving[]>();
  /** Calls that the server assigned to a client. */
  readonly forClient = new SvelteSet<string>();
  notes = $state.raw<Note[]>([]);
  /** The user's message that is being edited. */
  edited = $state<string | null>(null);
  /** Whether to summarize the previous messages with the next message. */
  compact = false;
  /** The number of messages sent in this tab. */
  said = $state(0);
  /** The message that a search led to: shown, and scrolled into view. */
  sought = $state<string | null>(null);
  /** The time in seconds of the stream's last event for each turn. */
  readonly heard = new Map<string, number>();
  /** Sent messages that no turn has taken yet. */
  queue = $state.raw<Pick<Tree, "queued" | "steering">>({ queued: [], steering: [] });
  /** The users who have the conversation open, if it is shared. */
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

  // ── read by components ────────────────────────────────────────────────────────────────────────────

  private readonly line = $derived.by(() => this.summary ?? list.known.get(this.id));
  readonly shared = $derived.by(() => (this.line ? this.line.shared || (catalog.me !== null && !isMe(this.line.owner)) : false));
  readonly rights = $derived.by(() => rightsIn(this.line));
  readonly mayAnswer = $derived(this.rights >= ANSWER);
  readonly mayTakePart = $derived(this.rights >= TAKE_PART);

  /** The sender of a message: without a name, it is the owner. */
  sender(by: string | null | undefined): string {
    return by ?? this.line?.owner ?? "";
  }

  /** The sender of a turn, or of the message that it works on. */
  senderOf(turn: string): string {
    const known = this.turns.get(turn);
    return known?.by || this.sender(this.messages.get(known?.message ?? "")?.by);
  }

  /** If a turn answers a message again, its sender can differ from the message's. */
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

  /** Live turns on the visible path. */
  readonly live = $derived.by(() => {
    const shown = new Set(this.path);
    return [...this.turns.values()].filter((turn) => turn.live && (shown.has(turn.message) || !this.branches.has(turn.message)));
  });

  readonly running = $derived(this.live.at(-1) ?? null);

  /** The limit at which the last visible turn ended: null if there was none, "" if it is not known which. */
  readonly limit = $derived.by(() => {
    const turn = this.messages.get(this.path.at(-1) ?? "")?.turn;
    if (!turn || this.running) return null;
    const ended = this.turns.get(turn);
    return ended ? ended.limit || null : this.limitOf(turn);
  });

  /** After a reload, the answer contains the limit. Without an answer, skipped calls show that there was a limit. */
  private limitOf(turn: string): Sentence | null {
    const messages = this.path.flatMap((id) => this.messages.get(id) ?? []).filter((message) => message.turn === turn);
    const told = messages.at(-1)?.metadata;
    if (told?.["limit"]) return saidIn(told as { limit: string }, "limit");
    return messages.some(({ parts }) => parts.some((part) => part.type === "call" && part.state === "skipped")) ? "" : null;
  }

  /** Roles do not change, so `blocks` need not read messages that are being written. */
  private kinds = new Map<string, Pick<Message, "role" | "author">>();

  versions(id: string): string[] {
    void this.shape;
    return [...this.branches.versions(id)]; // a copy, because derived values do not notice a list that is changed in place
  }

  /** The messages of an answer on its branch, from this one to the next user message. */
  answerFrom(id: string): string[] {
    void this.shape;
    const path = this.branches.path(this.branches.tip(id));
    return blocks(path, (one) => this.kinds.get(one)).find((block) => block.ids.includes(id))?.ids ?? [];
  }

  /** The calls that the program of a call has made so far. */
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

  // ── stream events ─────────────────────────────────────────────────────────────────────────────────

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

  /** If the list knows more than the stream reported, fetch the whole conversation again. */
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

  /** The turn whose reply was partly shown and is missing from the snapshot: the server stopped and requests it
   * again. */
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

  /** Add a message before the stream reports it. */
  put(message: Message): void {
    this.kinds.set(message.id, { role: message.role, author: message.author });
    if (this.branches.add(message.id, message.parent)) this.shape++;
    this.messages.set(message.id, message);
    this.folding.know(message);
  }

  /** An approval request was answered, by you or another user. The stream will report it, too. */
  settle(question: string): void {
    this.questions.delete(question);
  }

  private takeTurn(event: TurnEvent): void {
    const { turn } = event;
    this.heard.set(turn, Date.now() / 1000);
    if (this.turns.get(turn)?.retry) this.changeTurn(turn, { retry: null }); // any event ends the wait
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
        if (event.kind === "title") break; // the summary contains it
        if (event.kind === "source") void catalog.loadTools(this.id, true); // the tools dialog shows it
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

  /** A newer image replaces the previous one. A chunk of sound adds to the received bytes. */
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

  // ── missing from the stream ───────────────────────────────────────────────────────────────────────

  /** Fetch unknown messages without touching those that are being written. */
  private async refetch(): Promise<void> {
    if (this.refetching) return;
    this.refetching = true;
    try {
      const tree = await api.tree(this.id);
      for (const message of tree.messages) if (!this.messages.has(message.id)) this.put(message);
      this.flush();
      this.shape++;
    } catch {
      // The stream's next snapshot will contain them.
    } finally {
      this.refetching = false;
    }
  }

  private async refetchQuestions(): Promise<void> {
    try {
      for (const question of await api.questions(this.id)) this.questions.set(question.id, question);
    } catch {
      // The next snapshot will show them.
    }
  }

  private newFold(): Fold {
    return new Fold(this.id, (id) => this.messages.get(id));
  }
}
