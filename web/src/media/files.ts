/** The media kind of a file, and its name. */

import type { FilePart, Model } from "../api/types";
import { visible } from "../calls/visible";

export const isPicture = (file: Pick<FilePart, "media_type">): boolean =>
  file.media_type.startsWith("image/") && file.media_type !== "image/svg+xml"; // which could hold a script

export const isMask = (name: string): boolean => /mask\.\w+$/i.test(name);

const LONGEST = 300;

/** The alternative text of an image: its prompt, else its name. */
export function altOf(file: Pick<FilePart, "name" | "media_type">, about: string): string {
  const words = about.replace(/\s+/g, " ").trim();
  const text = words || file.name || file.media_type;
  return visible(text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);
}

/** Models that change an image they receive. */
export const changesPictures = (model: Pick<Model, "type" | "modalities">): boolean =>
  model.type === "image-edit" || (model.type === "image-gen" && model.modalities.includes("image"));

/** The name of the image's mask: the server recognizes it by its suffix. */
export const maskName = (name: string): string => `${name.replace(/\.\w+$/, "") || "picture"}-mask.png`;

/** 65 → 1:05 */
export function clock(seconds: number): string {
  const whole = Number.isFinite(seconds) ? Math.max(0, Math.floor(seconds)) : 0;
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (value: number): string => String(value).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}
