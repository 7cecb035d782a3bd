/** All approval requests that wait for this user, in all conversations and tasks: counted, listed, answered. */

import * as api from "../api/calls";
import { Problem } from "../api/client";
import type { Decision, Question } from "../api/types";
import { t } from "../i18n/words.svelte";
import { inOrder } from "../calls/order";
import { visible } from "../calls/visible";
import { list } from "./list.svelte";
import { ANSWER, isMe, rightsIn } from "./rights";
import { allowHere, settings } from "./settings.svelte";
import { attempt, tell } from "./toasts.svelte";

const PAUSE = 120; // milliseconds: several changes often arrive together

class Inbox {
  questions = $state.raw<Question[]>([]);
  private answered = new Set<string>(); // a list that was requested before an answer can arrive after it
  private known = new Set<string>();
  private changed = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private loading: Promise<void> = Promise.resolve(); // one after the other, so that an older response never arrives last

  readonly count = $derived(this.questions.length);

  /** The approval requests of a conversation and of those that its calls opened. */
  of(conversation: string): Question[] {
    return this.questions.filter((question) => {
      let id: string | undefined = question.conversation;
      while (id !== undefined && id !== conversation) id = list.known.get(id)?.parent?.conversation;
      return id === conversation;
    });
  }

  /** The approval requests of this conversation changed. */
  soon(conversation: string): void {
    this.changed.add(conversation);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const changed = [...this.changed];
      this.changed.clear();
      for (const id of changed) void this.one(() => this.loadOf(id));
    }, PAUSE);
  }

  /** Load all approval requests, chunk by chunk. */
  load(): Promise<void> {
    return this.one(async () => {
      const found: Question[] = [];
      for (;;) {
        const chunk = await api.questionsAfter(found.at(-1)?.id ?? null);
        if (!chunk.length) break;
        found.push(...chunk);
        const ids = new Set(found.map(({ id }) => id));
        await this.put([...found, ...this.questions.filter(({ id }) => !ids.has(id))]);
      }
      await this.put(found);
    });
  }

  /** If nothing waits in a conversation, no server request is needed. */
  private async loadOf(conversation: string): Promise<void> {
    const waits = list.known.get(conversation)?.waiting !== 0;
    const found = waits ? await api.questions(conversation) : [];
    await this.put([...this.questions.filter((question) => question.conversation !== conversation), ...found]);
  }

  private one(work: () => Promise<void>): Promise<void> {
    // the stream reports when the server is reachable again
    return (this.loading = this.loading.then(work).catch(() => undefined));
  }

  private async put(found: Question[]): Promise<void> {
    await Promise.all([...new Set(found.map((question) => question.conversation))].map((id) => this.learn(id)));
    const yours = (question: Question): boolean => rightsIn(list.known.get(question.conversation)) >= ANSWER;
    this.questions = inOrder(found.filter((question) => !this.answered.has(question.id) && yours(question)));
    const fresh = this.questions.filter(({ id }) => !this.known.has(id));
    for (const { id } of fresh) this.known.add(id);
    if (fresh[0]) notify(t().questionReady(visible(fresh[0].tool)), fresh[0].conversation);
  }

  /** A conversation older than the loaded ones is listed, too, while an approval request waits in it. */
  private async learn(conversation: string): Promise<void> {
    if (list.known.has(conversation)) return;
    try {
      list.put(await api.conversation(conversation));
    } catch {
      // The conversation then has no title here.
    }
  }

  /** Return whether this answer counts. Only the first answer does. If another one was faster, show a notice instead
   * of an error. */
  async answer(question: Question, decision: Decision): Promise<boolean> {
    let first = true;
    try {
      await api.answer(question.id, { ...decision, hash: question.hash });
      allowHere(question, decision);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 409) throw error;
      const by = await api.question(question.id).then(({ answer }) => answer?.by, () => null);
      tell(by && !isMe(by) ? t().answeredBy(visible(by)) : t().alreadyAnswered);
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

/** Show a desktop notification while the web UI is not in view. */
export function notify(words: string, conversation: string): void {
  if (!settings.notify || document.visibilityState === "visible" || !("Notification" in window)) return;
  if (Notification.permission !== "granted") return;
  const title = list.known.get(conversation)?.title ?? t().untitled;
  const shown = new Notification(words, { body: visible(title), tag: `dragoman ${conversation}` });
  shown.addEventListener("click", () => (window.focus(), shown.close()));
}

export const inbox = new Inbox();
