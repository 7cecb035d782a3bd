/** What the live stream tells. Names are the server's; `turn` says whose event it is. */

import type { CallState, Json, JsonObject, Kind, Message, Question, Summary, ToolResult, Tree, Usage, Verdict } from "./types";

interface OfTurn {
  turn?: string;
  seq?: number;
}

export type TurnEvent = OfTurn &
  (
    | { type: "turn.start"; conversation: string; message: string; resumed?: boolean }
    | { type: "turn.state"; state: string }
    | { type: "turn.end"; state: string; text: string; usage: Usage; error?: string | null }
    | { type: "step.start"; step: number; attempt: number; message: string; parent: string | null; model: string }
    | { type: "step.end"; step: number; usage: Usage }
    | { type: "notice"; text: string; kind?: string }
    | { type: "error"; message: string; kind?: string; retryable?: boolean }
    | { type: "reasoning.start" }
    | { type: "reasoning.delta"; text: string }
    | {
        type: "reasoning.end";
        signature?: string | null;
        wire?: string | null;
        opaque?: Json;
        seconds?: number | null;
      }
    | { type: "text.start" }
    | { type: "text.delta"; text: string }
    | { type: "text.end"; was_reasoning?: boolean }
    | { type: "call.input.start"; call: string; tool: string; provider_id?: string | null }
    | { type: "call.input.delta"; call: string; text: string }
    | {
        type: "call.input.end";
        call: string;
        tool: string;
        arguments: JsonObject | null;
        raw?: string | null;
        signature?: string | null;
      }
    | { type: "message.end"; message: string; finish: string; usage: Usage; unfinished?: boolean }
    | { type: "message.added"; message: Message }
    | {
        type: "call.asked";
        call: string;
        question: string;
        kind: Kind;
        tool: string;
        arguments: JsonObject;
        text: string;
        whole?: Question;
      }
    | { type: "call.answered"; call: string; question: string; verdict: Verdict }
    | {
        type: "call.start";
        call: string;
        tool: string;
        arguments: JsonObject;
        client?: boolean;
        at?: number | null;
      }
    | { type: "call.progress"; call: string; value: Json }
    | {
        type: "call.end";
        call: string;
        tool: string;
        arguments: JsonObject;
        state: CallState;
        result: ToolResult;
        original?: JsonObject | null;
        at?: number | null;
      }
  );

export type LiveEvent =
  | TurnEvent
  | ({ type: "snapshot" } & Tree)
  | ({ type: "conversation.changed" } & Summary)
  | { type: "conversation.deleted"; id: string }
  | { type: "list.reset" };
