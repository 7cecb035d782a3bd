/** Read one answer at a time aloud, with a speech model, else with the browser. */

import { fileAddress } from "../api/calls";
import { catalog } from "../state/catalog.svelte";
import { tell } from "../state/toasts.svelte";
import { askAside } from "./aside";
import { soundAddress } from "./listening.svelte";
import { byElement, playLive } from "./live-sound";
import { optionsOf } from "./options";
import { sentences, spoken } from "./spoken";
import { m } from "./words.svelte";

const PATIENCE = 1500; // milliseconds until a browser has found its voices

class Aloud {
  /** The answer that is read aloud. */
  reading = $state<string | null>(null);
  /** Whether a model's speech has started to play. */
  sounds = $state(false);
  private stopped = new AbortController();

  async toggle(id: string, text: string): Promise<void> {
    const again = this.reading === id;
    this.stop();
    if (again) return;
    this.reading = id;
    const { signal } = (this.stopped = new AbortController());
    const model = catalog.ofType("audio-tts");
    try {
      if (model) await byModel(model.name, spoken(text), signal);
      else await byBrowser(spoken(text), signal);
    } catch (error) {
      if (!signal.aborted) tell(error instanceof Error ? error.message : String(error), "error");
    } finally {
      if (!signal.aborted) this.stop();
    }
  }

  stop(): void {
    this.stopped.abort();
    this.reading = null;
    this.sounds = false;
  }
}

export const aloud = new Aloud();

/** Play the speech while it arrives. If the browser cannot do that, play it when it is complete. */
async function byModel(model: string, text: string, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  let heard: Promise<boolean> = Promise.resolve(false);
  try {
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
      (turn) => (heard = playLive(soundAddress(turn), either, () => (aloud.sounds = !signal.aborted)).ended),
    );
    if (await heard) return;
    const address = URL.createObjectURL(sound);
    const whole = await byElement(new Audio(address), either).ended.finally(() => URL.revokeObjectURL(address));
    if (!whole) throw new Error(m().soundFailed);
  } finally {
    over.abort();
  }
}

const ours = (): SpeechSynthesis | undefined => (globalThis as { speechSynthesis?: SpeechSynthesis }).speechSynthesis;

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
