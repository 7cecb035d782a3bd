/** The live stream: follows events, resumes after the last message it saw, and reports the state of the connection. */

import type { LiveEvent } from "./events";
import { SseReader } from "./sse";

export type Connection = "connecting" | "open" | "waiting" | "signed-out" | "gone" | "resting";

export interface StreamOptions {
  address: string;
  onEvent: (event: LiveEvent) => void;
  onConnection: (connection: Connection) => void;
  fetch?: typeof fetch;
  pause?: (milliseconds: number) => Promise<void>;
}

const FIRST_PAUSE = 300;
const LONGEST_PAUSE = 5000;
const SILENCE = 45_000; // three keep-alives are missing: the connection is dead and no error was reported

export class LiveStream {
  private cursor: string | null = null;
  private stopped = false;
  private resting: { done: Promise<void>; wake: () => void } | null = null;
  private running: AbortController | null = null;
  private wake: () => void = () => {};

  constructor(private readonly options: StreamOptions) {}

  /** Follow the stream until it is stopped or the server refuses it. */
  async run(): Promise<void> {
    let pause = FIRST_PAUSE;
    while (!this.stopped) {
      if (this.resting) await this.resting.done; // do not await without a reason: the request is sent immediately
      if (this.stopped) return;
      const outcome = await this.follow();
      if (this.stopped) return;
      if (this.resting) continue;
      if (outcome === "signed-out" || outcome === "gone") {
        this.options.onConnection(outcome);
        return;
      }
      pause = outcome === "heard" ? FIRST_PAUSE : pause;
      this.options.onConnection("waiting");
      await (this.options.pause ?? ((ms) => this.sleep(ms)))(pause);
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  }

  stop(): void {
    this.stopped = true;
    this.running?.abort();
    this.wake();
    this.wakeUp();
  }

  /** Close the connection and keep the cursor. */
  rest(): void {
    if (this.resting) return;
    let wake = (): void => {};
    const done = new Promise<void>((resolve) => (wake = resolve));
    this.resting = { done, wake };
    this.running?.abort();
    this.wake();
  }

  /** Resume after the last message it saw. */
  wakeUp(): void {
    this.resting?.wake();
    this.resting = null;
  }

  /** Retry now instead of at the end of the pause. */
  hurry(): void {
    this.wake();
  }

  private sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  private async follow(): Promise<"signed-out" | "gone" | "heard" | "nothing"> {
    const abort = (this.running = new AbortController());
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (this.cursor !== null) headers["Last-Event-ID"] = this.cursor;
    let heard = false;
    let watchdog: ReturnType<typeof setTimeout> | undefined;
    const awake = (): void => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(), SILENCE);
    };
    awake(); // a request without a response counts as a dead connection too
    try {
      const ask = this.options.fetch ?? fetch;
      const response = await ask(this.options.address, {
        headers,
        signal: abort.signal,
        credentials: "same-origin",
        cache: "no-store",
      });
      if (response.status === 401) return "signed-out";
      if (response.status === 404) return "gone";
      if (!response.ok || !response.body) return "nothing";
      this.options.onConnection("open");
      const reader = new SseReader();
      const text = response.body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, BufferSource>);
      const pieces = text.getReader();
      for (;;) {
        const { value, done } = await pieces.read();
        if (done || this.stopped) break;
        awake();
        for (const frame of reader.feed(value)) {
          heard = true;
          if (frame.event !== "server.stops") this.tell(frame.event, frame.data); // the connection returns in a moment
          if (frame.id !== null) this.cursor = frame.id;
        }
      }
    } catch {
      // A lost connection looks like any other error: only whether data arrived matters.
    } finally {
      clearTimeout(watchdog);
    }
    return heard ? "heard" : "nothing";
  }

  private tell(type: string, data: string): void {
    try {
      this.options.onEvent({ ...(JSON.parse(data) as object), type } as LiveEvent);
    } catch (error) {
      console.error("an event could not be taken in", type, error);
    }
  }
}
