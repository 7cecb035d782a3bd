/** Play a spoken answer while it arrives, one at a time. */

import { at } from "../api/client";
import { withBase } from "../basePath";
import { type LiveSound, playLive } from "./live-sound";

export const soundAddress = (turn: string): string => withBase(at`/api/turns/${turn}/sound`);

class Listening {
  /** The turn whose sound is played while it arrives. */
  turn = $state<string | null>(null);
  /** Whether playback has started. */
  sounds = $state(false);
  private sound: LiveSound | null = null;
  private stopped = new AbortController();

  async toggle(turn: string): Promise<void> {
    const again = this.turn === turn;
    this.stop();
    if (again) return;
    const { signal } = (this.stopped = new AbortController());
    this.turn = turn;
    this.sound = playLive(soundAddress(turn), signal, () => (this.sounds = !signal.aborted));
    await this.sound.ended;
    if (!signal.aborted) this.stop();
  }

  /** The sound is complete, and its player continues. Return the second to start from, or null if it was not
   * playing. */
  handOver(turn: string | null): number | null {
    if (turn === null || this.turn !== turn || !this.sound) return null;
    const second = this.sound.second();
    this.stop();
    return second;
  }

  stop(): void {
    this.stopped.abort();
    this.sound = this.turn = null;
    this.sounds = false;
  }
}

export const listening = new Listening();
