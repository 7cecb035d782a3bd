/** Play a sound while it arrives: WAV sample by sample, other formats in the chunks that the browser accepts. A
 * plain `<audio>` would wait for some 200 kB, which can be ten seconds of speech. */

import { WavReader } from "./samples";

const AHEAD = 30; // maximum seconds to buffer: the rest waits in the network stream
const LEAD = 0.08; // seconds before the first sample, so that the next ones arrive in time
const GLANCE = 250; // milliseconds

export interface LiveSound {
  /** Resolves at the end or on cancellation. False if this browser cannot play the sound live. */
  ended: Promise<boolean>;
  /** How many seconds were played. */
  second(): number;
}

/** `heard` is called when playback starts. */
export function playLive(address: string, signal: AbortSignal, heard: () => void): LiveSound {
  let sound: LiveSound | null = null;
  const ended = (async () => {
    const response = await fetch(address, { signal });
    const type = response.headers.get("content-type")?.split(";")[0] ?? "";
    if (!response.ok || !response.body) return false;
    if (/^audio\/(?:x-|vnd\.)?wave?$/.test(type)) sound = bySamples(response.body, signal, heard);
    else if (globalThis.MediaSource?.isTypeSupported(type)) sound = byPieces(response.body, type, signal, heard);
    else {
      void response.body.cancel();
      sound = byElement(new Audio(address), signal, heard);
    }
    return await sound.ended;
  })().catch(() => signal.aborted);
  return { ended, second: () => sound?.second() ?? 0 };
}

/** A sound that a media element plays by itself. */
export function byElement(player: HTMLAudioElement, signal: AbortSignal, heard: () => void = () => {}): LiveSound {
  const ended = new Promise<boolean>((resolve) => {
    signal.addEventListener("abort", () => (player.pause(), resolve(true)), { once: true });
    player.onplaying = heard;
    player.onended = () => resolve(true);
    player.onerror = () => resolve(signal.aborted);
    player.play().catch(() => resolve(signal.aborted));
  });
  return { ended, second: () => player.currentTime };
}

function bySamples(body: ReadableStream<Uint8Array>, signal: AbortSignal, heard: () => void): LiveSound {
  const context = new AudioContext();
  let [next, scheduled] = [0, 0]; // start time of the next samples, and the number of seconds scheduled
  const ahead = (): number => Math.max(0, next - context.currentTime);

  async function play(): Promise<boolean> {
    await context.resume();
    const reader = new WavReader();
    for await (const bytes of chunks(body, signal)) {
      const channels = reader.push(bytes);
      if (!channels[0]?.length) continue;
      const buffer = context.createBuffer(channels.length, channels[0].length, reader.form!.rate);
      channels.forEach((samples, channel) => buffer.copyToChannel(samples, channel));
      const source = new AudioBufferSourceNode(context, { buffer });
      source.connect(context.destination);
      next = Math.max(next, context.currentTime + LEAD);
      source.start(next);
      if (!scheduled) heard();
      [next, scheduled] = [next + buffer.duration, scheduled + buffer.duration];
      while (ahead() > AHEAD && !signal.aborted) await pause();
    }
    while (ahead() > 0 && !signal.aborted) await pause();
    return scheduled > 0;
  }

  const close = (): void => void (context.state !== "closed" && context.close().catch(() => {}));
  signal.addEventListener("abort", close, { once: true });
  return { ended: play().finally(close), second: () => Math.max(0, scheduled - ahead()) };
}

function byPieces(body: ReadableStream<Uint8Array>, type: string, signal: AbortSignal, heard: () => void): LiveSound {
  const source = new MediaSource();
  const address = URL.createObjectURL(source);
  const player = new Audio(address);
  const sound = byElement(player, signal, heard);

  async function feed(): Promise<void> {
    if (source.readyState !== "open") await once(source, "sourceopen");
    const buffer = source.addSourceBuffer(type);
    for await (const bytes of chunks(body, signal)) {
      buffer.appendBuffer(bytes as Uint8Array<ArrayBuffer>);
      await once(buffer, "updateend");
      while (player.buffered.length && player.buffered.end(player.buffered.length - 1) - player.currentTime > AHEAD && !signal.aborted) await pause();
    }
    if (source.readyState === "open") source.endOfStream();
  }

  const failed = feed().then(
    () => new Promise<boolean>(() => {}), // the element reports the end
    () => signal.aborted,
  );
  return { ended: Promise.race([sound.ended, failed]).finally(() => (player.pause(), URL.revokeObjectURL(address))), second: sound.second };
}

async function* chunks(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (let piece = await reader.read(); !piece.done && !signal.aborted; piece = await reader.read()) yield piece.value;
  } finally {
    void reader.cancel().catch(() => {});
  }
}

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, GLANCE));
const once = (target: EventTarget, name: string): Promise<unknown> => new Promise((resolve) => target.addEventListener(name, resolve, { once: true }));
