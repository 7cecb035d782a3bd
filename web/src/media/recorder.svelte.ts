/** The microphone: its level, the duration, and the recording. */

import { asWav, LONGEST } from "./wav";

export const canRecord = (): boolean => typeof MediaRecorder !== "undefined" && Boolean(navigator.mediaDevices?.getUserMedia);

const EVERY = 100; // milliseconds

export class Recorder {
  state = $state<"off" | "asking" | "on">("off");
  /** The current level, from 0 to 1. */
  level = $state(0);
  seconds = $state(0);

  private recorder: MediaRecorder | null = null;
  private context: AudioContext | null = null;
  private timer: ReturnType<typeof setInterval> | undefined;
  private pieces: Blob[] = [];
  private wanted = false;

  /** Throws if no microphone exists or the user denies access. */
  async start(): Promise<void> {
    if (this.state !== "off") return;
    this.state = "asking";
    this.wanted = true;
    let stream: MediaStream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch (error) {
      this.state = "off";
      throw error;
    }
    if (!this.wanted) return end(stream); // cancelled while the browser asked
    this.pieces = [];
    this.recorder = new MediaRecorder(stream);
    this.recorder.ondataavailable = ({ data }) => void this.pieces.push(data);
    this.recorder.start(1000);
    this.watch(stream);
    this.state = "on";
  }

  /** The recording. */
  async stop(name: string): Promise<File> {
    const { recorder, seconds } = this;
    if (!recorder) throw new Error("nothing is being recorded");
    await new Promise((resolve) => {
      recorder.onstop = resolve;
      recorder.stop();
    });
    const recorded = new Blob(this.pieces, { type: recorder.mimeType.split(";")[0] || "audio/webm" });
    this.release();
    const sound = seconds > LONGEST ? recorded : await asWav(recorded).catch(() => recorded);
    return new File([sound], `${name}.${sound.type.split("/")[1] ?? "webm"}`, { type: sound.type });
  }

  cancel(): void {
    this.wanted = false;
    if (this.recorder?.state !== "inactive") this.recorder?.stop();
    this.release();
  }

  private watch(stream: MediaStream): void {
    const began = performance.now();
    this.context = new AudioContext();
    const analyser = this.context.createAnalyser();
    analyser.fftSize = 1024;
    this.context.createMediaStreamSource(stream).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    this.seconds = 0;
    this.timer = setInterval(() => {
      analyser.getFloatTimeDomainData(samples);
      const loudness = Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
      this.level = Math.min(1, loudness * 4);
      this.seconds = (performance.now() - began) / 1000;
    }, EVERY);
  }

  private release(): void {
    clearInterval(this.timer);
    if (this.recorder) end(this.recorder.stream);
    void this.context?.close();
    this.recorder = this.context = null;
    this.level = 0;
    this.state = "off";
  }
}

function end(stream: MediaStream): void {
  for (const track of stream.getTracks()) track.stop();
}
