/** Everything that waits for this person, of all conversations and tasks: counted, shown in one list, answered. */

import * as api from "../api/calls";
import { Problem } from "../api/client";
import type { Decision, Question } from "../api/types";
import { t } from "../i18n/words.svelte";
import { inOrder } from "../calls/order";
import { visible } from "../calls/visible";
import { list } from "./list.svelte";
import { allowHere, settings } from "./settings.svelte";
import { attempt, tell } from "./toasts.svelte";

const PAUSE = 120; // milliseconds: several changes are often told at once

class Inbox {
  questions = $state.raw<Question[]>([]);
  private answered = new Set<string>(); // what was asked for before an answer may arrive after it
  private known = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  readonly count = $derived(this.questions.length);

  /** Of a conversation and of those that its calls opened. */
  of(conversation: string): Question[] {
    return this.questions.filter((question) => {
      let id: string | undefined = question.conversation;
      while (id !== undefined && id !== conversation) id = list.known.get(id)?.parent?.conversation;
      return id === conversation;
    });
  }

  soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.load(), PAUSE);
  }

  async load(): Promise<void> {
    try {
      const found = (await api.allQuestions()).filter(({ id }) => !this.answered.has(id));
      this.questions = inOrder(found);
    } catch {
      return; // the stream tells when the server is there again
    }
    await Promise.all([...new Set(this.questions.map((question) => question.conversation))].map((id) => this.learn(id)));
    const fresh = this.questions.filter(({ id }) => !this.known.has(id));
    for (const { id } of fresh) this.known.add(id);
    if (fresh[0]) notify(t().questionReady(visible(fresh[0].tool)), fresh[0].conversation);
  }

  /** One that is older than those in the list is shown there, too, while it waits. */
  private async learn(conversation: string): Promise<void> {
    if (list.known.has(conversation)) return;
    try {
      list.put(await api.conversation(conversation));
    } catch {
      // it has no title then
    }
  }

  /** Whether this answer counts. The first one does: where another was quicker, that is told, and is no error. */
  async answer(question: Question, decision: Decision): Promise<boolean> {
    let first = true;
    try {
      await api.answer(question.id, { ...decision, hash: question.hash });
      allowHere(question, decision);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 409) throw error;
      tell(t().alreadyAnswered);
      first = false;
    }
    this.settle(question.id);
    return first;
  }

  async answerAll(questions: Question[], decision: Decision): Promise<void> {
    for (const question of questions) await attempt(() => this.answer(question, decision));
  }

  settle(id: string): void {
    this.answered.add(id);
    this.questions = this.questions.filter((question) => question.id !== id);
  }

}

/** A notification of the system, while the web UI is not in view. */
export function notify(words: string, conversation: string): void {
  if (!settings.notify || document.visibilityState === "visible" || !("Notification" in window)) return;
  if (Notification.permission !== "granted") return;
  const title = list.known.get(conversation)?.title ?? t().untitled;
  const shown = new Notification(words, { body: visible(title), tag: `dragoman ${conversation}` });
  shown.addEventListener("click", () => (window.focus(), shown.close()));
}

export const inbox = new Inbox();
