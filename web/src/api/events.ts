/** What the live stream tells. Names and fields are the server's: see generated.ts. */

import type { LiveEvent } from "./generated";

export type { LiveEvent };
export type TurnEvent = Extract<LiveEvent, { turn: string }>;
export type EventOf<T extends TurnEvent["type"]> = Extract<TurnEvent, { type: T }>;
