/** The single stream of this tab: opened for the current conversation, closed while the tab is hidden. */

import { signedOut } from "../api/client";
import type { LiveEvent } from "../api/events";
import { settings } from "./settings.svelte";
import { type Connection, LiveStream } from "../api/stream";
import { withBase } from "../basePath";

const HIDDEN_FOR = 60_000;

class Live {
  connection = $state<Connection>("connecting");
  private stream: LiveStream | null = null;
  private restTimer: ReturnType<typeof setTimeout> | undefined;

  /** Follow the events of this conversation and of the list. After a lost connection, events can be missing. */
  open(conversation: string | null, onEvent: (event: LiveEvent) => void, onReturn: () => void, onGone: () => void): void {
    this.stream?.stop();
    const query = conversation === null ? "" : `?conversation=${encodeURIComponent(conversation)}`;
    const stream: LiveStream = new LiveStream({
      address: withBase(`/api/events${query}`),
      onEvent: (event) => {
        if (this.stream === stream) onEvent(event);
      },
      onConnection: (state) => {
        if (this.stream !== stream) return;
        if (state === "open" && this.connection === "waiting") onReturn();
        if (state === "signed-out") signedOut();
        this.connection = state;
        if (state === "gone") onGone();
      },
    });
    this.stream = stream;
    this.connection = "connecting";
    void stream.run();
  }

  /** A browser allows six connections per host, so a hidden tab closes its connection. */
  watchVisibility(): void {
    document.addEventListener("visibilitychange", () => {
      clearTimeout(this.restTimer);
      if (document.visibilityState === "hidden" && !settings.notify) {
        this.restTimer = setTimeout(() => {
          if (this.connection === "gone") return; // the conversation no longer exists
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
}

export const live = new Live();
