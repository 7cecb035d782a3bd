/** Reading aloud: one answer at a time, by a model that speaks, else by the browser. */

import { fileAddress } from "../api/calls";
import { catalog } from "../state/catalog.svelte";
import { tell } from "../state/toasts.svelte";
import { askAside } from "./aside";
import { optionsOf } from "./options";
import { sentences, spoken } from "./spoken";
import { m } from "./words.svelte";

const PATIENCE = 1500; // milliseconds until a browser has found its voices

class Aloud {
  /** The answer that is read. */
  reading = $state<string | null>(null);
  private stopped = new AbortController();

  async toggle(id: string, text: string): Promise<void> {
    const again = this.reading === id;
    this.stop();
    if (again) return;
    this.reading = id;
    const { signal } = (this.stopped = new AbortController());
    const model = catalog.ofType("audio-tts");
    try {
      if (model && !(model.last_resort && (await browserSpeaks()))) await byModel(model.name, spoken(text), signal);
      else await byBrowser(spoken(text), signal);
    } catch (error) {
      if (!signal.aborted) tell(error instanceof Error ? error.message : String(error), "error");
    } finally {
      if (!signal.aborted) this.reading = null;
    }
  }

  stop(): void {
    this.stopped.abort();
    this.reading = null;
  }
}

export const aloud = new Aloud();

async function byModel(model: string, text: string, signal: AbortSignal): Promise<void> {
  const sound = await askAside(
    model,
    [{ type: "text", text }],
    optionsOf(model),
    async ({ parts }) => {
      const file = parts.find((part) => part.type === "file");
      if (file?.type !== "file") throw new Error(m().cannotRead);
      return (await fetch(fileAddress(file), { signal })).blob(); // before it is deleted
    },
    signal,
  );
  const address = URL.createObjectURL(sound);
  const player = new Audio(address);
  try {
    await new Promise<void>((resolve, reject) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
      player.onended = () => resolve();
      player.onerror = () => reject(new Error(m().soundFailed));
      player.play().catch(reject);
    });
  } finally {
    player.pause();
    URL.revokeObjectURL(address);
  }
}

const ours = (): SpeechSynthesis | undefined => (globalThis as { speechSynthesis?: SpeechSynthesis }).speechSynthesis;

async function browserSpeaks(): Promise<boolean> {
  const synthesis = ours();
  return synthesis !== undefined && (await hasVoices(synthesis));
}

async function byBrowser(text: string, signal: AbortSignal): Promise<void> {
  const synthesis = ours();
  if (!synthesis || !(await hasVoices(synthesis))) throw new Error(m().cannotRead);
  const stop = (): void => synthesis.cancel();
  signal.addEventListener("abort", stop, { once: true });
  const lang = /[\u3400-\u9fff]/.test(text) ? "zh-CN" : "";
  for (const piece of sentences(text)) {
    if (signal.aborted) return;
    await new Promise<void>((resolve, reject) => {
      const utterance = new SpeechSynthesisUtterance(piece);
      if (lang) utterance.lang = lang;
      utterance.onend = () => resolve();
      utterance.onerror = ({ error }) => (signal.aborted || error === "canceled" || error === "interrupted" ? resolve() : reject(new Error(m().cannotRead)));
      signal.addEventListener("abort", () => resolve(), { once: true });
      synthesis.speak(utterance);
    });
  }
}

async function hasVoices(synthesis: SpeechSynthesis): Promise<boolean> {
  if (synthesis.getVoices().length) return true;
  await new Promise((resolve) => {
    synthesis.addEventListener?.("voiceschanged", resolve, { once: true });
    setTimeout(resolve, PATIENCE);
  });
  return synthesis.getVoices().length > 0;
}
