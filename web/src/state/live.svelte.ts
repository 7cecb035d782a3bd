/** The one stream of this tab: opened for the conversation shown, let go of while the tab is hidden. */

import type { LiveEvent } from "../api/events";
import { type Connection, LiveStream } from "../api/stream";

const HIDDEN_FOR = 60_000;

class Live {
  connection = $state<Connection>("connecting");
  private stream: LiveStream | null = null;
  private restTimer: ReturnType<typeof setTimeout> | undefined;
  private onEvent: (event: LiveEvent) => void = () => {};
  private onReturn: () => void = () => {};
  private conversation: string | null = null;

  /** From now on, news of this conversation and of the list. After a lost connection, news may be missing. */
  open(conversation: string | null, onEvent: (event: LiveEvent) => void, onReturn: () => void): void {
    this.conversation = conversation;
    this.onEvent = onEvent;
    this.onReturn = onReturn;
    this.start();
  }

  close(): void {
    this.stream?.stop();
    this.stream = null;
  }

  /** A browser allows six connections to a host: a tab that nobody sees gives its own back. */
  watchVisibility(): void {
    document.addEventListener("visibilitychange", () => {
      clearTimeout(this.restTimer);
      if (document.visibilityState === "hidden") {
        this.restTimer = setTimeout(() => {
          this.stream?.rest();
          this.connection = "resting";
        }, HIDDEN_FOR);
      } else if (this.connection === "resting") {
        this.stream?.wakeUp();
      } else {
        this.stream?.hurry();
      }
    });
    window.addEventListener("online", () => this.stream?.hurry());
  }

  private start(): void {
    this.stream?.stop();
    const query = this.conversation === null ? "" : `?conversation=${encodeURIComponent(this.conversation)}`;
    const onEvent = this.onEvent;
    const stream: LiveStream = new LiveStream({
      address: `/api/events${query}`,
      onEvent: (event) => {
        if (this.stream === stream) onEvent(event);
      },
      onConnection: (connection) => {
        if (this.stream !== stream) return;
        if (connection === "open" && this.connection === "waiting") this.onReturn();
        this.connection = connection;
      },
    });
    this.stream = stream;
    this.connection = "connecting";
    void stream.run();
  }
}

export const live = new Live();
