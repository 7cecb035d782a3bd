/** What a message holds that the model is known not to take. */

import type { Model } from "../api/types";
import type { Attached } from "./attachments.svelte";

const KINDS = ["image", "audio", "video", "file"] as const; // as the server names them: a file is a PDF
export type Modality = (typeof KINDS)[number];

export function kindOf(type: string): Modality | null {
  if (type === "application/pdf") return "file";
  return KINDS.find((kind) => type.startsWith(`${kind}/`)) ?? null;
}

/** Nothing where the model's modalities are not known. */
export function untaken(items: Pick<Attached, "type">[], model: Pick<Model, "modalities"> | undefined): Modality[] {
  if (!model?.modalities.length) return [];
  const kinds = new Set(items.flatMap(({ type }) => kindOf(type) ?? []));
  return [...kinds].filter((kind) => !model.modalities.includes(kind));
}
