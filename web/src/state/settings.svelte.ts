/** What a person likes, kept in this browser. */

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
  /** Conversations in which the tools of this browser run without a click. */
  runHere: string[];
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
};

function kept(): Kept {
  try {
    return { ...DEFAULTS, ...(JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Kept>) };
  } catch {
    return { ...DEFAULTS }; // storage is off, or holds something else
  }
}

export const settings = $state<Kept>(kept());

export function keep(changes: Partial<Kept>): void {
  Object.assign(settings, changes);
  try {
    localStorage.setItem(KEY, JSON.stringify(settings));
  } catch {
    // it holds until the page is closed
  }
  if (changes.theme) showTheme();
}

export function showTheme(): void {
  const root = document.documentElement;
  if (settings.theme === "system") delete root.dataset.theme;
  else root.dataset.theme = settings.theme;
}

export function runsHere(conversation: string): boolean {
  return settings.runHere.includes(conversation);
}

export function letRunHere(conversation: string, on: boolean): void {
  const others = settings.runHere.filter((id) => id !== conversation);
  keep({ runHere: on ? [...others.slice(-99), conversation] : others });
}
