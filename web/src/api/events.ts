/** The events of the live stream. Names and fields are the server's: see generated.ts. */

import type { LiveEvent } from "./generated";

export type { LiveEvent };
export type TurnEvent = Extract<LiveEvent, { turn: string }>;
export type EventOf<T extends TurnEvent["type"]> = Extract<TurnEvent, { type: T }>;
