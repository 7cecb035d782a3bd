/** The user's preferences, kept in this browser. */

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
  /** The effect of a message sent while a turn runs. */
  whileRunning: "steer" | "queue";
  sidebar: boolean;
  /** Conversations in which browser tools run without a click, and CONVERSATION/TOOL for single tools. */
  runHere: string[];
  /** Whether to show a desktop notification when something waits and the web UI is not in view. */
  notify: boolean;
  /** The model that was chosen last; null: the server's default. */
  model: string | null;
  /** Recently chosen models, newest first. */
  recent: string[];
  /** Kinds of files to send to a model although it is unknown what it accepts. */
  anyway: Record<string, string[]>;
  /** The model of new conversations: the last one (`last`), the server's default (`server`), or a model by its name. */
  begins: string;
  /** How file changes are shown, if there is room for both. */
  diff: "unified" | "split";
  /** Options of image and speech models, by model name. */
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
    return {}; // storage is disabled, or contains something else
  }
}

export const settings = $state<Kept>({ ...DEFAULTS, ...kept() });

/** Changes that the storage did not take: valid until the web UI is closed. */
let unstored: Partial<Kept> = {};

/** A change in another tab applies here, too. Saving in this tab does not revert it. */
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
/** Calls that were allowed in this tab: a user who just approved one need not click again. */
const allowed = new SvelteSet<string>();

/** Whether the browser's tools, or one of their calls, run without another click. */
export function runsHere(conversation: string, call?: { id: string; tool: string }): boolean {
  if (settings.runHere.includes(conversation)) return true;
  if (!call) return false;
  const tools = [conversation, EVERYWHERE].map((where) => `${where}/${call.tool}`);
  return allowed.has(call.id) || settings.runHere.some((kept) => tools.includes(kept));
}

/** An approval in this tab is also the click that a browser tool waits for. */
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
