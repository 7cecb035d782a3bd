/** Turn speech into text in the message field, with a transcription model or with the browser. */

import * as api from "../api/calls";
import type { Model } from "../api/types";
import { t } from "../i18n/words.svelte";
import { catalog } from "../state/catalog.svelte";
import { askAside } from "./aside";
import { optionsOf } from "./options";

/** The transcription model. */
export function listener(): Model | undefined {
  return catalog.ofType("audio-stt");
}

export async function transcribe(file: File, model: Model, signal: AbortSignal): Promise<string> {
  const part = await api.attach(file);
  return askAside(
    model.name,
    [part],
    optionsOf(model.name),
    ({ parts }) => parts.map((one) => (one.type === "text" ? one.text : "")).join("").trim(),
    signal,
  );
}

interface Recognised {
  results: ArrayLike<ArrayLike<{ transcript: string }>>;
}
interface Recognition {
  lang: string;
  continuous: boolean;
  interimResults: boolean;
  onresult: ((event: Recognised) => void) | null;
  onerror: ((event: { error: string }) => void) | null;
  onend: (() => void) | null;
  start(): void;
  stop(): void;
  abort(): void;
}
type Browser = { SpeechRecognition?: new () => Recognition; webkitSpeechRecognition?: new () => Recognition };

const ours = (): (new () => Recognition) | undefined => {
  const { SpeechRecognition, webkitSpeechRecognition } = globalThis as unknown as Browser;
  return SpeechRecognition ?? webkitSpeechRecognition;
};

export const browserListens = (): boolean => ours() !== undefined;

export class BrowserDictation {
  on = $state(false);
  private recognition: Recognition | null = null;

  /** `heard` repeatedly receives all words so far. `failed` receives the browser's error. */
  start(heard: (words: string) => void, failed: (error: string) => void): void {
    const Recogniser = ours();
    if (!Recogniser || this.on) return;
    const recognition = new Recogniser();
    recognition.lang = t().code === "zh" ? "zh-CN" : navigator.language;
    recognition.continuous = recognition.interimResults = true;
    recognition.onresult = ({ results }) => heard(Array.from(results, (result) => result[0]?.transcript ?? "").join("").trim());
    recognition.onerror = ({ error }) => (error === "aborted" ? undefined : failed(error));
    recognition.onend = () => (this.on = false);
    recognition.start();
    this.recognition = recognition;
    this.on = true;
  }

  stop(): void {
    this.recognition?.stop();
  }
}
