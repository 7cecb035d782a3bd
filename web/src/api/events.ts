/** What the live stream tells. Names and fields are the server's: see generated.ts. */

import type * as server from "./generated";

/** The provider did not answer: it is asked again after a wait. To go as soon as the description has it. */
export interface StepRetry {
  type: "step.retry";
  turn: string;
  attempt: number;
  seconds: number;
  reason: string;
  status: number | null;
  seq: number;
}

export type LiveEvent = server.LiveEvent | StepRetry;
export type TurnEvent = Extract<LiveEvent, { turn: string }>;
export type EventOf<T extends TurnEvent["type"]> = Extract<TurnEvent, { type: T }>;
