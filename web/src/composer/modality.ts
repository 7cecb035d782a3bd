/** The parts of a message that the model is known not to accept. */

import type { Model } from "../api/types";
import type { Attached } from "./attachments.svelte";

const KINDS = ["image", "audio", "video", "file"] as const; // in the server's terms: a file is a PDF
export type Modality = (typeof KINDS)[number];

export function kindOf(type: string): Modality | null {
  if (type === "application/pdf") return "file";
  return KINDS.find((kind) => type.startsWith(`${kind}/`)) ?? null;
}

/** Empty if the model's modalities are unknown. */
export function untaken(items: Pick<Attached, "type">[], model: Pick<Model, "modalities"> | undefined): Modality[] {
  if (!model?.modalities.length) return [];
  const kinds = new Set(items.flatMap(({ type }) => kindOf(type) ?? []));
  return [...kinds].filter((kind) => !model.modalities.includes(kind));
}
