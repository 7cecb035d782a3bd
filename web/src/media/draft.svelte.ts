/** The images and sound of the message field: what is missing, what is recorded, and the options to send. */

import type { JsonObject } from "../api/types";
import type { Attached, Attachments } from "../composer/attachments.svelte";
import { kindOf } from "../composer/modality";
import { app } from "../state/app.svelte";
import { catalog } from "../state/catalog.svelte";
import type { ConversationView } from "../state/conversation.svelte";
import { keep, settings } from "../state/settings.svelte";
import { attempt, tell } from "../state/toasts.svelte";
import { lackOf, type Offer, offersFor, takes } from "./check";
import { BrowserDictation, browserListens, listener, transcribe } from "./dictation.svelte";
import { changesPictures, isMask } from "./files";
import { optionsOf } from "./options";
import { canRecord, Recorder } from "./recorder.svelte";
import { m } from "./words.svelte";

/** The parts of the message field that are needed here. */
export interface Field {
  text: () => string;
  write: (text: string) => void;
  pick: (accept: string) => void;
  send: () => void;
  attachments: Attachments;
  view: ConversationView | null;
}

export class MediaDraft {
  readonly recorder = new Recorder();
  readonly dictation = new BrowserDictation();
  transcribing = $state(false);
  private stopped = new AbortController();

  constructor(private readonly field: Field) {}

  readonly model = $derived.by(() => {
    const name = catalog.modelOf(app.chosen);
    return catalog.models.find((model) => model.name === name);
  });

  /** Files in earlier messages: some models continue with them. */
  private readonly earlier = $derived.by(() => {
    const view = this.field.view;
    const parts = view?.path.flatMap((id) => view.messages.get(id)?.parts ?? []) ?? [];
    const has = (kind: string): boolean => parts.some((part) => part.type === "file" && kindOf(part.media_type) === kind);
    return { picture: has("image"), sound: has("audio") };
  });

  private readonly message = $derived.by(() => ({ text: this.field.text(), files: this.field.attachments.items }));
  readonly lack = $derived.by(() => (this.model ? lackOf(this.message, this.model, this.earlier, settings.anyway[this.model.name]) : null));
  readonly offers = $derived.by(() =>
    this.lack && this.model ? offersFor(this.lack, this.message, this.model, catalog.models, this.records) : [],
  );

  /** The image on which a mask could be painted. */
  readonly maskable = $derived.by<Attached | null>(() => {
    if (!this.model || !changesPictures(this.model)) return null;
    const pictures = this.field.attachments.items.filter(({ type }) => kindOf(type) === "image");
    const [only] = pictures;
    return pictures.length === 1 && only?.part && !isMask(only.name) ? only : null;
  });

  get options(): JsonObject {
    return this.model && this.model.type !== "chat" ? optionsOf(this.model.name) : {};
  }

  get takesSound(): boolean {
    return this.model !== undefined && takes(this.model, "audio");
  }

  /** Whether the web UI records the sound; otherwise the browser's speech recognition listens. */
  get records(): boolean {
    return canRecord() && (this.takesSound || listener() !== undefined || !browserListens());
  }

  get listens(): boolean {
    return this.records || browserListens();
  }

  get transcribes(): boolean {
    return listener() !== undefined && this.model?.type !== "audio-stt";
  }

  async take(offer: Offer): Promise<void> {
    if (offer.kind === "model") await app.choose({ model: offer.model.name }, false);
    else if (offer.kind === "attach") this.field.pick(offer.accept);
    else if (offer.kind === "record") await this.listen();
    else if (offer.kind === "anyway") this.sendAnyway();
    else app.open("models");
  }

  /** From now on, this model receives such files. Its server reports what it cannot read. */
  private sendAnyway(): void {
    if (!this.model || this.lack?.code !== "unknown") return;
    const { name } = this.model;
    keep({ anyway: { ...settings.anyway, [name]: [...(settings.anyway[name] ?? []), ...this.lack.kinds] } });
    this.field.send();
  }

  async listen(): Promise<void> {
    if (!this.records) return this.dictate();
    try {
      await this.recorder.start();
    } catch {
      tell(m().noMicrophone, "error");
    }
  }

  private dictate(): void {
    const before = this.field.text();
    this.dictation.start(
      (words) => this.field.write(joined(before, words)),
      (error) => tell(error === "no-speech" ? m().nothingHeard : m().noMicrophone, "error"),
    );
  }

  private recorded(): Promise<File | undefined> {
    const time = new Date().toTimeString().slice(0, 8).replaceAll(":", "-");
    return attempt(() => this.recorder.stop(`${m().recordingName}-${time}`));
  }

  async attach(): Promise<void> {
    const file = await this.recorded();
    if (file) this.field.attachments.add([file]);
  }

  async transcribe(): Promise<void> {
    const model = listener();
    const file = await this.recorded();
    if (!file || !model) return;
    this.transcribing = true;
    const { signal } = (this.stopped = new AbortController());
    try {
      const words = await transcribe(file, model, signal);
      if (words) this.field.write(joined(this.field.text(), words));
      else tell(m().nothingHeard, "note");
    } catch (error) {
      if (signal.aborted) return;
      tell(error instanceof Error ? error.message : String(error), "error");
      this.field.attachments.add([file]); // the recording is not lost
    } finally {
      this.transcribing = false;
    }
  }

  giveUp(): void {
    this.stopped.abort();
  }

  /** The user leaves the conversation. */
  end(): void {
    this.giveUp();
    this.recorder.cancel();
    this.dictation.stop();
  }
}

const joined = (before: string, words: string): string => (before && !/\s$/.test(before) ? `${before} ${words}` : before + words);
