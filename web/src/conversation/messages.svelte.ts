/** Loads the message list separately: a new conversation has no messages, and others are fetched meanwhile. */

import type { Component } from "svelte";

import { moment } from "../i18n/format";
import { t } from "../i18n/words.svelte";
import { whenIdle } from "../parts/idle";
import type { ConversationView } from "../state/conversation.svelte";

type MessageList = Component<{ view: ConversationView; blocks: ConversationView["blocks"] }>;

let loaded = $state.raw<MessageList | null>(null);

export async function loadMessages(): Promise<void> {
  loaded ??= (await import("./MessageList.svelte"))?.default ?? null;
  whenIdle(() => void moment(0, t().code)); // the first clock is slow to create: do not do it while the user waits
}

export const messageList = (): MessageList | null => loaded;
