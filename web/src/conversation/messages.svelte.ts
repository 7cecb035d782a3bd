/** The list of messages arrives beside the page: who begins has none, and others are fetched meanwhile. */

import type { Component } from "svelte";

import type { ConversationView } from "../state/conversation.svelte";

type MessageList = Component<{ view: ConversationView; blocks: ConversationView["blocks"] }>;

let loaded = $state.raw<MessageList | null>(null);

export async function loadMessages(): Promise<void> {
  loaded ??= (await import("./MessageList.svelte"))?.default ?? null;
}

export const messageList = (): MessageList | null => loaded;
