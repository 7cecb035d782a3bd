/** The icon and the tone of each call state. */

import type { CallPart, CallState, FilePart, JsonObject, ToolResult } from "../api/types";
import type { IconName } from "../parts/icons";

export type Tone = "calm" | "busy" | "warn" | "good" | "bad";

export const LOOKS: Record<CallState, { icon: IconName; tone: Tone }> = {
  pending: { icon: "tool", tone: "calm" },
  asked: { icon: "question", tone: "warn" },
  running: { icon: "clock", tone: "busy" },
  reviewing: { icon: "eye", tone: "warn" },
  completed: { icon: "check", tone: "good" },
  failed: { icon: "cross", tone: "bad" },
  rejected: { icon: "cross", tone: "bad" },
  withheld: { icon: "eyeOff", tone: "calm" },
  skipped: { icon: "skip", tone: "calm" },
  cancelled: { icon: "stop", tone: "calm" },
  interrupted: { icon: "warning", tone: "warn" },
};

/** The arguments on one line: what a user scans for. */
export function briefly(values: JsonObject, length = 90): string {
  const shown = Object.values(values).map((value) => {
    const texts = Array.isArray(value) && value.every((item) => typeof item === "string");
    return typeof value === "string" ? value : texts ? value.join(", ") : JSON.stringify(value);
  });
  const line = shown.join(" · ").replace(/\s+/g, " ").trim();
  return line.length > length ? `${line.slice(0, length)}…` : line;
}

export const pretty = (value: unknown): string => JSON.stringify(value, null, 2);

/** The file changes of a call as a diff; empty if it changed nothing. */
export function diffOf(result: ToolResult | null | undefined): string {
  const diff = result?.metadata?.diff;
  return typeof diff === "string" ? diff : "";
}

/** What the cage refused, in words, and the request that allows exactly that. */
export type Refusal = { text: string; asks: string };

/** What the cage of a call refused; null if the call ran in none. */
export function refusedIn(result: ToolResult | null | undefined): Refusal[] | null {
  const cage = result?.metadata?.cage as { refused?: unknown } | undefined;
  const told = Array.isArray(cage?.refused) ? (cage.refused as (string | Partial<Refusal>)[]) : [];
  const refused = told.map((one) => (typeof one === "string" ? { text: one, asks: "" } : { text: String(one.text), asks: String(one.asks) }));
  return cage ? refused : null;
}

/** The parts of a result that are viewed or played, not read. */
export function pictures(result: ToolResult | null | undefined): FilePart[] {
  return (result?.attachments ?? []).filter(({ media_type }) => /^(?:image\/(?!svg)|audio\/)/.test(media_type));
}

/** The requested description of the generated content, if the tool states it. */
export function promptOf({ arguments: { prompt } }: Pick<CallPart, "arguments">): string {
  return typeof prompt === "string" ? prompt : "";
}

