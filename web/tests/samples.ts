/** Values as a server sends them, of which a test says only what it is about. */

import type { TurnEvent } from "../src/api/events";
import type { CallPart, Message, Question, Summary, TextPart, ToolResult, Tree, Usage } from "../src/api/types";
import { emptyMessage } from "../src/state/fold";

type Sketched<E> = E extends { type: infer T } ? { type: T } & { [K in keyof E]?: K extends "result" ? Partial<E[K]> : E[K] } : never;
/** An event with what matters in it. */
export type Sketch = Sketched<TurnEvent>;

const DEFAULTS: { [T in TurnEvent["type"]]?: object } = {
  "turn.start": { resumed: false },
  "turn.end": { text: "", error: null, limit: null },
  "step.retry": { attempts: 3, status: null },
  notice: { kind: "notice" },
  error: { kind: "error", retryable: false },
  "reasoning.end": { signature: null, wire: null, opaque: null, seconds: null, field_name: null },
  "text.end": { was_reasoning: false, phase: null },
  "item.added": { text: "", wire: null, opaque: null },
  "call.input.start": { provider_id: null },
  "call.input.end": { raw: null, signature: null },
  "message.end": { message: "", unfinished: false },
  "call.asked": { because: "rule", rules: [], choices: [], schema: {}, whole: null },
  "call.start": { client: false, at: null },
  "call.end": { original: null, at: null },
};

export const event = (sketch: Sketch): TurnEvent => ({ seq: 0, turn: "", ...DEFAULTS[sketch.type], ...sketch }) as TurnEvent;
export const events = (...sketches: Sketch[]): TurnEvent[] => sketches.map(event);

export const USAGE: Usage = { input: 1, output: 1, cached: 0, cache_written: 0, reasoning: 0, cost: null, images: 0, seconds: 0, characters: 0 };

export function message(id: string, parent: string | null, role: Message["role"], more: Partial<Message> = {}): Message {
  return { ...emptyMessage(id, "conv_1", parent, role, "turn_1"), turn: null, ...more };
}

export const text = (words: string): TextPart => ({ type: "text", text: words, citations: [], phase: null });

export const result = (text: string): ToolResult => ({
  text,
  value: null,
  title: null,
  metadata: {},
  attachments: [],
  blob: null,
  note: null,
});

export function call(id: string, more: Partial<CallPart> = {}): CallPart {
  const later = { raw: null, result: null, provider_id: null, format: "", guessed: false, signature: null, signed_by: null, original: null, started: null, ended: null, made_in: null };
  return { type: "call", id, tool: "add", arguments: {}, state: "pending", ...later, ...more };
}

export function question(id: string, about: string, more: Partial<Question> = {}): Question {
  return {
    id,
    conversation: "conv_1",
    turn: "turn_2",
    call: about,
    kind: "approve",
    tool: "rm",
    text: "May rm run with these arguments?",
    arguments: {},
    hash: "h",
    server: null,
    because: "rule",
    patterns: [],
    rules: [],
    wider: [],
    choices: [],
    free: false,
    schema: {},
    result: null,
    diff: "",
    told: [],
    in_parts: false,
    fingerprint: null,
    asked: 0,
    answer: null,
    closed: null,
    ...more,
  };
}

export const summary = (leaf: string | null): Summary => ({
  id: "conv_1",
  title: "t",
  leaf,
  settings: {},
  usage: USAGE,
  created: 0,
  updated: 0,
  live: false,
  waiting: 0,
  parent: null,
  snippet: null,
  found: null,
  pinned: false,
  archived: false,
  tags: [],
  owner: "local",
  role: "owns", shared: false,
});

export const tree = (leaf: string | null, messages: Message[]): Tree => ({
  type: "snapshot",
  conversation: summary(leaf),
  messages,
  turns: [],
  questions: [],
  queued: [],
  steering: [],
  revision: 1,
});
