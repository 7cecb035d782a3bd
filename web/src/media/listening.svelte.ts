/** An answer that is spoken, heard while it comes: one at a time. */

import { at } from "../api/client";
import { withBase } from "../basePath";
import { type LiveSound, playLive } from "./live-sound";

export const soundAddress = (turn: string): string => withBase(at`/api/turns/${turn}/sound`);

class Listening {
  /** The turn whose sound is heard while it comes. */
  turn = $state<string | null>(null);
  /** Something is to be heard. */
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

  /** It is whole now, and its own player goes on: from which second. Null where it was not heard. */
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
