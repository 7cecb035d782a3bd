/** Fold events into messages: the web UI's twin of the server's `messages/fold.py`. No DOM, no network. */

import type { TurnEvent } from "../api/events";
import type { CallPart, Json, Message, Part, ReasoningPart, TextPart } from "../api/types";

type Open = "text" | "reasoning";

/** A reply while it arrives. Closed parts keep their identity, so that only changed parts are rendered again. */
export class Draft {
  private parts: Part[] = [];
  private open = new Map<Open, number>();
  private calls = new Map<string, number>();
  private inner = new Map<string, CallPart>();
  private built: Message | null;

  constructor(private head: Message) {
    this.built = head;
    head.parts.forEach((part, place) => {
      this.parts.push(part);
      if (part.type === "call") this.calls.set(part.id, place);
    });
    for (const call of head.inner ?? []) this.inner.set(call.id, call as CallPart);
    this.reopen();
  }

  /** A snapshot does not say whether its last part is closed. A delta that follows belongs to it. */
  private reopen(): void {
    const last = this.parts.at(-1);
    if (this.head.finish || !last) return;
    if (last.type === "text" || last.type === "reasoning") this.open.set(last.type, this.parts.length - 1);
  }

  get message(): Message {
    this.built ??= { ...this.head, parts: [...this.parts], inner: [...this.inner.values()] };
    return this.built;
  }

  apply(event: TurnEvent): void {
    this.built = null;
    switch (event.type) {
      case "step.model":
        this.head = { ...this.head, model: event.model };
        break;
      case "reasoning.start":
        this.begin("reasoning");
        break;
      case "text.start":
        this.begin("text");
        break;
      case "reasoning.delta":
        this.add("reasoning", event.text);
        break;
      case "text.delta":
        this.add("text", event.text);
        break;
      case "reasoning.end": {
        const { signature, wire, opaque, seconds, field_name } = event;
        const place = this.close("reasoning");
        const text = (this.parts[place] as ReasoningPart).text;
        this.parts[place] = { ...thought(text, this.head.model), signature, wire, opaque, seconds, field_name };
        break;
      }
      case "text.end": {
        const place = this.close("text");
        this.parts[place] = { ...(this.parts[place] as TextPart), phase: event.phase };
        if (event.was_reasoning) this.parts = this.parts.map((part) => this.asReasoning(part));
        break;
      }
      case "text.cited":
        this.cite(event.citations);
        break;
      case "item.added": {
        const { kind, text, wire, opaque } = event;
        this.parts.push({ type: "item", kind, text, wire, opaque, model: this.head.model });
        break;
      }
      case "file.added":
        this.parts.push({ ...event.file, made_by: this.head.model });
        break;
      case "call.input.start":
        this.calls.set(event.call, this.parts.length);
        this.parts.push(emptyCall(event));
        break;
      case "call.input.delta":
        this.change(event.call, (call) => ({ partial: (call.partial ?? "") + event.text }));
        break;
      case "call.input.end":
        this.change(event.call, () => ({
          tool: event.tool,
          arguments: event.arguments ?? {},
          raw: event.raw,
          signature: event.signature,
          signed_by: event.signature ? this.head.model : null,
          partial: undefined,
        }));
        break;
      case "call.made": {
        const { call, tool, made_in } = event;
        this.inner.set(call, { ...emptyCall({ call, tool, provider_id: null, format: "", guessed: false }), arguments: event.arguments, made_in, partial: undefined });
        break;
      }
      case "call.asked":
        if (event.kind === "review") this.change(event.call, () => ({ state: "reviewing" }));
        else if (event.kind !== "tool") {
          this.change(event.call, () => ({ state: "asked", arguments: event.arguments, partial: undefined }));
        }
        break;
      case "call.start":
        this.change(event.call, () => ({
          state: "running",
          arguments: event.arguments,
          started: event.at,
          partial: undefined,
        }));
        break;
      case "call.end":
        this.change(event.call, () => ({
          tool: event.tool,
          arguments: event.arguments,
          state: event.state,
          result: event.result,
          original: event.original,
          ended: event.at,
          partial: undefined,
        }));
        break;
      case "provider.data":
        this.chances(event.data.logprobs);
        this.heard(event.data.transcript);
        break;
      case "message.end":
        this.open.clear();
        this.head = { ...this.head, finish: event.finish, usage: event.usage };
        if (event.reason) this.head.metadata = { ...this.head.metadata, reason: event.reason };
        break;
      case "error":
        // this reply was complete: another message contains the error
        if (this.head.finish && this.head.finish !== "error") break;
        this.open.clear();
        this.parts.push({ type: "error", message: event.message, kind: event.kind, retryable: event.retryable, said: event.said });
        break;
    }
  }

  /** Sources belong to the last text, even if it is closed. */
  private cite(citations: TextPart["citations"]): void {
    let place = this.open.get("text") ?? this.parts.findLastIndex((part) => part.type === "text");
    if (place < 0) place = this.parts.push(emptyText()) - 1;
    const part = this.parts[place] as TextPart;
    this.parts[place] = { ...part, citations: [...part.citations, ...citations] };
  }

  /** Log probabilities are kept with the message, token by token. */
  private chances(found: Json | undefined): void {
    const tokens = found && typeof found === "object" && !Array.isArray(found) ? found.content : found;
    if (!Array.isArray(tokens)) return;
    const held = this.head.metadata.logprobs;
    const logprobs = [...(Array.isArray(held) ? held : []), ...tokens];
    this.head = { ...this.head, metadata: { ...this.head.metadata, logprobs } };
  }

  /** A transcript has a language, a duration and segments besides its text. */
  private heard(transcript: Json | undefined): void {
    if (!transcript || typeof transcript !== "object" || Array.isArray(transcript)) return;
    this.head = { ...this.head, metadata: { ...this.head.metadata, transcript } };
  }

  private asReasoning(part: Part): Part {
    return part.type === "text" ? thought(part.text, this.head.model) : part;
  }

  private begin(kind: Open): number {
    const place = this.parts.length;
    this.open.set(kind, place);
    this.parts.push(kind === "text" ? emptyText() : thought("", this.head.model));
    return place;
  }

  private add(kind: Open, text: string): void {
    const place = this.open.get(kind) ?? this.begin(kind);
    const part = this.parts[place] as TextPart | ReasoningPart;
    this.parts[place] = { ...part, text: part.text + text };
  }

  private close(kind: Open): number {
    const place = this.open.get(kind) ?? this.begin(kind);
    this.open.delete(kind);
    return place;
  }

  private change(id: string, changes: (call: CallPart) => Partial<CallPart>): void {
    const inner = this.inner.get(id);
    if (inner) this.inner.set(id, { ...inner, ...changes(inner) });
    const place = this.calls.get(id);
    if (place === undefined) return;
    const call = this.parts[place] as CallPart;
    this.parts[place] = { ...call, ...changes(call) };
  }
}

function thought(text: string, model: string | null): ReasoningPart {
  return { type: "reasoning", text, model, signature: null, wire: null, opaque: null, seconds: null, field_name: null };
}

function emptyText(): TextPart {
  return { type: "text", text: "", citations: [], phase: null };
}

type Begun = Pick<Extract<TurnEvent, { type: "call.input.start" }>, "call" | "tool" | "provider_id" | "format" | "guessed">;

function emptyCall({ call: id, tool, provider_id, format, guessed }: Begun): CallPart {
  const later = { raw: null, result: null, signature: null, signed_by: null, original: null, started: null, ended: null, made_in: null };
  return { type: "call", id, tool, arguments: {}, state: "pending", provider_id, format, guessed, ...later, partial: "" };
}

/** The fields that every message has. */
export function emptyMessage(id: string, conversation: string, parent: string | null, role: Message["role"], turn: string): Message {
  const later = { author: null, model: null, finish: null, usage: null, metadata: {}, inner: [], by: null };
  return { id, conversation, parent, role, parts: [], turn, created: Date.now() / 1000, ...later };
}

/** Map events to drafts: replies by their turn's last step, calls by the message that contains them. */
export class Fold {
  private drafts = new Map<string, Draft>();
  private current = new Map<string, string>();
  private homes = new Map<string, string>();

  constructor(
    private readonly conversation: string,
    private readonly find: (id: string) => Message | undefined,
  ) {}

  /** Register an existing message: its calls can be found, and an unfinished reply continues. */
  know(message: Message): void {
    for (const part of message.parts) if (part.type === "call") this.homes.set(part.id, message.id);
    for (const call of message.inner ?? []) this.homes.set(call.id, message.id);
    const unfinished = message.role === "assistant" && !message.author && !message.finish;
    if (unfinished && message.turn) this.current.set(message.turn, message.id);
  }

  /** Apply an event. Return the ID of the message that it changed, if any. */
  apply(event: TurnEvent): string | null {
    const { turn } = event;
    switch (event.type) {
      case "step.start": {
        const empty = emptyMessage(event.message, this.conversation, event.parent, "assistant", turn);
        this.drafts.set(event.message, new Draft({ ...empty, model: event.model }));
        this.current.set(turn, event.message);
        return event.message;
      }
      case "message.added":
        this.drafts.delete(event.message.id);
        this.know(event.message);
        return null;
      case "call.input.start": {
        const home = this.current.get(turn);
        if (home) this.homes.set(event.call, home);
        return this.into(home, event);
      }
      case "call.made": {
        const home = this.homes.get(event.made_in.call);
        if (home) this.homes.set(event.call, home);
        return this.into(home, event);
      }
      case "call.asked":
      case "call.start":
      case "call.end":
      case "call.input.delta":
      case "call.input.end":
        return this.into(this.homes.get(event.call), event);
      case "step.model":
      case "reasoning.start":
      case "reasoning.delta":
      case "reasoning.end":
      case "text.start":
      case "text.delta":
      case "text.end":
      case "text.cited":
      case "item.added":
      case "file.added":
      case "provider.data":
      case "message.end":
      case "error":
        return this.into(this.current.get(turn), event);
      default: // events that change no message, and events of a newer server
        return null;
    }
  }

  /** The message after the applied events. */
  message(id: string): Message | undefined {
    return this.drafts.get(id)?.message;
  }

  private into(id: string | undefined, event: TurnEvent): string | null {
    if (id === undefined) return null;
    let draft = this.drafts.get(id);
    if (!draft) {
      const known = this.find(id);
      if (!known) return null;
      draft = new Draft(known);
      this.drafts.set(id, draft);
    }
    draft.apply(event);
    return id;
  }
}

/** The messages in the events of a whole turn, in the order in which they began. */
export function fold(events: Iterable<TurnEvent>, conversation = "", turn = ""): Message[] {
  const messages = new Map<string, Message>();
  const folding = new Fold(conversation, (id) => messages.get(id));
  for (const event of events) {
    if (event.type === "message.added") messages.set(event.message.id, event.message);
    const id = folding.apply({ ...event, turn });
    const message = id === null ? undefined : folding.message(id);
    if (message) messages.set(message.id, message);
  }
  return [...messages.values()].filter((message) => message.parts.length > 0);
}
