/** What a person likes, kept in this browser. */

import { SvelteSet } from "svelte/reactivity";

import type { Decision, JsonObject, Question } from "../api/types";

export type Theme = "system" | "light" | "dark";
export type Language = "auto" | "en" | "zh";

interface Kept {
  theme: Theme;
  language: Language;
  /** Enter sends, or Ctrl/Cmd+Enter does. */
  sendKey: "enter" | "mod-enter";
  remoteImages: "ask" | "always";
  /** What a message sent while a turn runs does. */
  whileRunning: "steer" | "queue";
  sidebar: boolean;
  /** Conversations in which the tools of this browser run without a click, and CONVERSATION/TOOL for single tools. */
  runHere: string[];
  /** A desktop notification when something waits and the page is not seen. */
  notify: boolean;
  /** The model that was chosen last; null: the server's own. */
  model: string | null;
  /** Models that were chosen, the newest first. */
  recent: string[];
  /** Kinds of files that go to a model though nobody lists what it takes. */
  anyway: Record<string, string[]>;
  /** What new conversations begin with: that one (`last`), the server's own (`server`), or a model by its name. */
  begins: string;
  /** How changes of files are shown, where there is room for both. */
  diff: "unified" | "split";
  /** Of models that make pictures, listen or speak, by their names. */
  options: Record<string, JsonObject>;
}

const KEY = "dragoman.settings";
const DEFAULTS: Kept = {
  theme: "system",
  language: "auto",
  sendKey: "enter",
  remoteImages: "ask",
  whileRunning: "steer",
  sidebar: true,
  runHere: [],
  notify: false,
  model: null,
  recent: [],
  anyway: {},
  begins: "last",
  diff: "unified",
  options: {},
};

function kept(): Partial<Kept> {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Kept>;
  } catch {
    return {}; // storage is off, or holds something else
  }
}

export const settings = $state<Kept>({ ...DEFAULTS, ...kept() });

/** What the storage did not take: it holds until the page is closed. */
let unstored: Partial<Kept> = {};

/** What another tab has changed holds here, too, and is not undone by what this one keeps. */
export function readKept(): void {
  Object.assign(settings, kept(), unstored);
  showTheme();
}

export function keep(changes: Partial<Kept>): void {
  Object.assign(settings, kept(), unstored, changes);
  try {
    localStorage.setItem(KEY, JSON.stringify(settings));
    unstored = {};
  } catch {
    unstored = { ...unstored, ...changes };
  }
  if (changes.theme) showTheme();
}

export function showTheme(): void {
  const root = document.documentElement;
  if (settings.theme === "system") delete root.dataset.theme;
  else root.dataset.theme = settings.theme;
}

const EVERYWHERE = "*";
/** Calls that were allowed in this tab: who has just said yes need not click again. */
const allowed = new SvelteSet<string>();

/** Whether the tools of this browser, or one call of them, run without another click. */
export function runsHere(conversation: string, call?: { id: string; tool: string }): boolean {
  if (settings.runHere.includes(conversation)) return true;
  if (!call) return false;
  const tools = [conversation, EVERYWHERE].map((where) => `${where}/${call.tool}`);
  return allowed.has(call.id) || settings.runHere.some((kept) => tools.includes(kept));
}

/** An answer in this tab is also the click that a tool of this browser waits for. */
export function allowHere(question: Question, { verdict, scope }: Decision): void {
  if (verdict !== "allow") return;
  allowed.add(question.call);
  if (!scope || scope === "once") return;
  const where = scope === "conversation" ? question.conversation : EVERYWHERE;
  letRunHere(`${where}/${question.tool}`, true);
}

export function letRunHere(conversation: string, on: boolean): void {
  readKept();
  const others = settings.runHere.filter((id) => id !== conversation);
  keep({ runHere: on ? [...others.slice(-99), conversation] : others });
}
