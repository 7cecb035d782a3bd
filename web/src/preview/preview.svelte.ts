/** The preview next to the conversation, if one is open. */

import type { Source } from "./sources";

class Preview {
  source = $state.raw<Source | null>(null);
  conversation = $state<string | null>(null);

  open(conversation: string, source: Source): void {
    this.conversation = conversation;
    this.source = source;
  }

  close(): void {
    this.source = null;
  }
}

export const preview = new Preview();
