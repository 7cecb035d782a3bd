/** Format numbers, sizes and times for people, and find the server's sentences. */

import type { Said, Usage } from "../api/types";

/** A sentence from the server: plain text, or text with the code and the values that a translation needs. */
export type Sentence = string | Said;

/** The sentence in a field of a server response, with its code if it has one. */
export const saidIn = <K extends string>(of: { [key in K]: string | null } & { said?: Record<string, Said> | null }, field: K): Sentence =>
  of.said?.[field] ?? of[field] ?? "";

export function duration(seconds: number): string {
  if (seconds < 0.95) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 59.5) return `${seconds < 9.95 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds) % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB"];
  let value = bytes / 1000;
  let place = 0;
  while (value >= 1000 && place < units.length - 1) {
    value /= 1000;
    place++;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[place]}`;
}

export function count(value: number): string {
  if (value < 1000) return String(value);
  if (value < 100_000) return `${(value / 1000).toFixed(1)}k`;
  if (value < 1_000_000) return `${Math.round(value / 1000)}k`;
  return `${(value / 1_000_000).toFixed(1)}M`;
}

/** An unknown cost is not a cost of zero. */
export function cost(usage: Usage, unknown: string): string {
  if (usage.cost === null || usage.cost === undefined) return unknown;
  if (usage.cost === 0) return "$0";
  return usage.cost < 0.01 ? `$${usage.cost.toPrecision(2)}` : `$${usage.cost.toFixed(2)}`;
}

export const total = (usage: Usage): number => usage.input + usage.output;

export function added(one: Usage, other: Usage): Usage {
  const sum = (key: keyof Omit<Usage, "cost">): number => (one[key] ?? 0) + (other[key] ?? 0);
  const unused = (usage: Usage): boolean => !total(usage) && !usage.images && !usage.seconds && !usage.characters;
  const known = (usage: Usage): boolean => unused(usage) || (usage.cost ?? null) !== null;
  return {
    input: sum("input"),
    output: sum("output"),
    cached: sum("cached"),
    cache_written: sum("cache_written"),
    reasoning: sum("reasoning"),
    images: sum("images"),
    seconds: sum("seconds"),
    characters: sum("characters"),
    cost: known(one) && known(other) && (one.cost ?? other.cost ?? null) !== null ? (one.cost ?? 0) + (other.cost ?? 0) : null,
  };
}

export function moment(seconds: number, language: string): string {
  const date = new Date(seconds * 1000);
  const sameDay = date.toDateString() === new Date().toDateString();
  return clock(language, sameDay).format(date);
}

const clocks = new Map<string, Intl.DateTimeFormat>();

/** Cached: creating a formatter takes milliseconds, and every message has a time. */
function clock(language: string, sameDay: boolean): Intl.DateTimeFormat {
  const key = `${language} ${sameDay}`;
  let made = clocks.get(key);
  if (!made) {
    const look: Intl.DateTimeFormatOptions = sameDay ? { hour: "2-digit", minute: "2-digit" } : { dateStyle: "medium", timeStyle: "short" };
    const here = navigator.language.startsWith(language) ? navigator.language : language; // English clocks differ by country
    clocks.set(key, (made = new Intl.DateTimeFormat(here, look)));
  }
  return made;
}
