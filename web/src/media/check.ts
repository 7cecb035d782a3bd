/** Find what a message lacks for its model while the user types, and suggest alternatives.
 *
 * The server checks it again. If it is unknown what a model accepts, the user decides, once for each kind of file. */

import type { Model } from "../api/types";
import { kindOf, type Modality } from "../composer/modality";
import { isMask } from "./files";

export type Offer = { kind: "model"; model: Model } | { kind: "attach"; accept: "image/*" | "audio/*" } | { kind: "record" | "choose" | "anyway" };

export type Lack =
  | { code: "untaken" | "unknown"; kinds: Modality[] }
  | { code: "needsPicture" }
  | { code: "needsSound" }
  | { code: "oneSound" }
  | { code: "needsWords"; type: Model["type"] };

export interface Message {
  text: string;
  files: { name: string; type: string }[];
}
/** Files of earlier messages that a model would continue with. */
export interface Earlier {
  picture: boolean;
  sound: boolean;
}

const TAKEN: Partial<Record<Model["type"], Modality[]>> = { "image-edit": ["image"], "audio-stt": ["audio"], "audio-tts": [] };
const MOST = 3;

/** Null if nothing is known. */
function takenBy(model: Pick<Model, "type" | "modalities">): string[] | null {
  const always = TAKEN[model.type];
  if (model.modalities.length) return [...model.modalities, ...(always ?? [])];
  return always ?? null;
}

export function takes(model: Pick<Model, "type" | "modalities">, kind: Modality): boolean {
  return takenBy(model)?.includes(kind) ?? false;
}

/** `anyway`: the kinds of files to send to this model although it is unknown what it accepts. */
export function lackOf(message: Message, model: Pick<Model, "type" | "modalities">, earlier: Earlier, anyway: string[] = []): Lack | null {
  if (!message.text.trim() && !message.files.length) return null; // the message is empty
  const kinds = [...new Set(message.files.flatMap(({ type }) => kindOf(type) ?? []))];
  const taken = takenBy(model);
  const untaken = taken ? kinds.filter((kind) => !taken.includes(kind)) : [];
  if (untaken.length) return { code: "untaken", kinds: untaken };
  const unknown = taken ? [] : kinds.filter((kind) => !anyway.includes(kind));
  if (unknown.length) return { code: "unknown", kinds: unknown };
  if (model.type === "chat") return null;
  const sounds = message.files.filter(({ type }) => kindOf(type) === "audio").length;
  if (model.type === "audio-stt") {
    if (sounds > 1) return { code: "oneSound" };
    return sounds || earlier.sound ? null : { code: "needsSound" };
  }
  const pictures = message.files.filter(({ type }) => kindOf(type) === "image");
  const shown = pictures.length === 1 || pictures.some(({ name }) => !isMask(name));
  if (model.type === "image-edit" && !shown && !earlier.picture) return { code: "needsPicture" };
  const words = message.text.trim() !== "" || message.files.some(({ type }) => type.startsWith("text/"));
  return words ? null : { code: "needsWords", type: model.type };
}

/** Ready models that would accept the message, those of the same type first. */
export function offersFor(lack: Lack, message: Message, model: Pick<Model, "name" | "type">, models: Model[], canRecord: boolean): Offer[] {
  const others = models.filter((other) => other.ready && other.name !== model.name);
  const offered = (fits: (other: Model) => boolean): Offer[] =>
    others
      .filter(fits)
      .sort((one, other) => Number(other.type === model.type) - Number(one.type === model.type))
      .slice(0, MOST)
      .map((other) => ({ kind: "model", model: other }));
  switch (lack.code) {
    case "unknown":
    case "untaken": {
      const fitting = offered((other) => lack.kinds.every((kind) => takes(other, kind)) && lackOf(message, other, { picture: false, sound: false })?.code !== "untaken");
      if (lack.code === "unknown") return [{ kind: "anyway" }, ...fitting];
      return fitting.length ? fitting : [{ kind: "choose" }];
    }
    case "needsPicture":
      return [{ kind: "attach", accept: "image/*" }, ...offered(({ type }) => type === "image-gen").slice(0, 1)];
    case "needsSound":
      return [
        { kind: "attach", accept: "audio/*" },
        ...(canRecord ? [{ kind: "record" } as const] : []),
        ...offered(({ type }) => type === "chat").slice(0, 1),
      ];
    case "oneSound":
    case "needsWords":
      return []; // the user fixes it in the field or the attachments
  }
}
