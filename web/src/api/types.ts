/** The values of the API under the names that the web UI uses. generated.ts describes their fields. */

import type * as server from "./generated";

export type {
  AgentView as Agent,
  CallState,
  ConversationSummary as Summary,
  Decision,
  FileOutput as FilePart,
  GrantView as Grant,
  GroupView as Group,
  JsonValue as Json,
  UnfinishedTurn as Turn,
  Me,
  ModelView as Model,
  NamedPrompt as Prompt,
  ProviderView as Provider,
  Question,
  Reasoning as ReasoningPart,
  RuleOutput as Rule,
  SaidOutput as Said,
  TextOutput as TextPart,
  ToolResult,
  ToolView as ToolInfo,
  TreeView as Tree,
  Usage,
  UsageView as UsageReport,
} from "./generated";

export type JsonObject = { [key: string]: server.JsonValue };
export type Schema = JsonObject;

export type Kind = server.Question["kind"];
export type Cause = server.Question["because"];
export type Scope = server.Answer["scope"];
export type Mode = server.Me["mode"];
export type ConversationSettings = server.ConversationSummary["settings"];

/** Only the web UI sets `partial`: the argument text while it arrives. */
export type CallPart = server.ToolCall & { partial?: string };
export type Part = Exclude<server.Message["parts"][number], server.ToolCall> | CallPart;
export type Message = Omit<server.Message, "parts"> & { parts: Part[] };
