/** The values of the API, as they come over the wire. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };
export type Schema = JsonObject;

export interface Usage {
  input: number;
  output: number;
  cached: number;
  cache_written: number;
  reasoning: number;
  cost: number | null;
}

export type CallState =
  | "pending"
  | "asked"
  | "running"
  | "reviewing"
  | "completed"
  | "failed"
  | "rejected"
  | "withheld"
  | "skipped"
  | "cancelled"
  | "interrupted";

export interface TextPart {
  type: "text";
  text: string;
}
export interface ReasoningPart {
  type: "reasoning";
  text: string;
  signature?: string | null;
  wire?: string | null;
  model?: string | null;
  opaque?: Json;
  seconds?: number | null;
}
export interface FilePart {
  type: "file";
  media_type: string;
  blob?: string | null;
  url?: string | null;
  name?: string | null;
  size?: number | null;
}
export interface ToolResult {
  text: string;
  value?: Json;
  title?: string | null;
  metadata?: JsonObject;
  attachments?: FilePart[];
  blob?: string | null;
  note?: string | null;
}
export interface CallPart {
  type: "call";
  id: string;
  tool: string;
  arguments: JsonObject;
  raw?: string | null;
  state: CallState;
  result?: ToolResult | null;
  provider_id?: string | null;
  signature?: string | null;
  original?: JsonObject | null;
  started?: number | null;
  ended?: number | null;
  /** Only in the page: the argument text while it arrives. */
  partial?: string;
}
export interface StepPart {
  type: "step";
  step: number;
}
export interface SummaryPart {
  type: "summary";
  text: string;
  keeps_from: string | null;
}
export interface ErrorPart {
  type: "error";
  message: string;
  kind?: string;
  retryable?: boolean;
}
export type Part = TextPart | ReasoningPart | FilePart | CallPart | StepPart | SummaryPart | ErrorPart;

export interface Message {
  id: string;
  conversation: string;
  parent: string | null;
  role: "user" | "assistant";
  parts: Part[];
  turn?: string | null;
  author?: string | null;
  model?: string | null;
  finish?: string | null;
  usage?: Usage | null;
  created?: number;
  metadata?: JsonObject;
}

export type Mode = "auto" | "ask" | "manual" | "off";

export interface ConversationSettings {
  model?: string;
  agent?: string;
  mode?: Mode;
  system?: string;
  options?: JsonObject;
  tools?: Record<string, boolean>;
}

export interface Summary {
  id: string;
  title: string | null;
  leaf: string | null;
  settings: ConversationSettings;
  usage: Usage;
  created: number;
  updated: number;
  live: boolean;
  waiting: number;
  parent: { conversation: string; call: string | null } | null;
  snippet?: string | null;
}

export interface Turn {
  id: string;
  message: string;
  state: string;
  live: boolean;
  started: number | null;
  model: string | null;
}

export interface Rule {
  permission: string;
  pattern: string;
  action: "allow" | "ask" | "deny";
}
export type Kind = "approve" | "run" | "loop" | "interrupted" | "review" | "tool";
export type Verdict = "allow" | "reject" | "stop" | "release" | "withhold" | "reply";
export type Scope = "once" | "conversation" | "always";

export interface Answer {
  verdict: Verdict;
  scope?: Scope;
  arguments?: JsonObject;
  reason?: string;
  value?: Json;
  hash?: string;
}

export interface Question {
  id: string;
  conversation: string;
  turn: string;
  call: string;
  kind: Kind;
  tool: string;
  text: string;
  arguments: JsonObject;
  hash: string;
  server?: string | null;
  rules?: Rule[];
  choices?: string[];
  schema?: Schema;
  result?: ToolResult | null;
  asked?: number;
  answer?: Answer | null;
  closed?: string | null;
}

export interface Grant {
  id: string;
  rule: Rule;
  words: string;
  conversation: string | null;
  created: number;
}

export interface Tree {
  conversation: Summary;
  messages: Message[];
  turns: Turn[];
  questions: Question[];
}

export interface Me {
  user: string | null;
  version: string;
  model: { name: string; note: string | null; reason: string | null } | null;
  mode: Mode;
  agents: Agent[];
  limits: { upload: number };
  workspace: string | null;
  signed_in: boolean;
  needs_password: boolean;
}
export interface Agent {
  name: string;
  description: string;
  model: string | null;
}
export interface Model {
  name: string;
  provider: string;
  title: string;
  context: number | null;
  modalities: string[];
  tools: string | null;
  note: string | null;
  ready: boolean;
  missing: string | null;
}
export interface ToolInfo {
  name: string;
  offered_as: string | null;
  description: string;
  permission: string;
  schema: Schema;
  client: boolean;
  server: string | null;
  on: boolean;
  review: string;
  replay: string;
}
export interface Group {
  name: string;
  rules: string | null;
  on: boolean;
  server: string | null;
  state: string | null;
  tools: ToolInfo[];
}
export interface Prompt {
  name: string;
  text: string;
}
export interface UsageReport {
  total: Usage;
  models: { model: string | null; usage: Usage; messages: number }[];
  days: { day: string; usage: Usage }[];
}
