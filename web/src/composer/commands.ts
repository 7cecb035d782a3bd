/** Commands of the terminal program that apply here, under the same names. The message field lists them after `/`. */

import * as api from "../api/calls";
import { t } from "../i18n/words.svelte";
import { app, type DialogName } from "../state/app.svelte";
import type { ConversationView } from "../state/conversation.svelte";
import { attempt, tell } from "../state/toasts.svelte";

const en = {
  about: {
    model: "Choose another model",
    tools: "Choose the tools of this conversation",
    new: "Start another conversation",
    prompts: "Add or edit your prompts",
    grants: "Show what you allowed and denied",
    help: "Show help",
    diff: "Review all file changes of this conversation",
    undo: "Undo the last answer's file changes",
    redo: "Restore what the last undo took back",
    fork: "Continue in a copy of this conversation",
    rerun: "Ask for another version of the last answer",
    edit: "Edit your last message",
    compact: "Summarize the conversation with your next message",
    context: "Show what fills the model's context",
    trace: "Show what the last answer did, step by step",
    export: "Save this conversation as Markdown",
  },
  compactNext: "Dragoman summarizes what came before when you send your next message. Nothing is deleted.",
  command: "Command",
  prompt: "Prompt",
  insert: "Insert",
};

type CommandName = keyof typeof en.about;

const zh: typeof en = {
  about: {
    model: "选择其他模型",
    tools: "选择此对话的工具",
    new: "开始另一个对话",
    prompts: "添加或编辑提示词",
    grants: "查看你允许和拒绝的内容",
    help: "查看帮助",
    diff: "审阅此对话的全部文件改动",
    undo: "撤销上一个回答的文件改动",
    redo: "恢复上次撤销的内容",
    fork: "在此对话的副本中继续",
    rerun: "让模型重新回答",
    edit: "编辑你的上一条消息",
    compact: "随下一条消息总结此前的对话",
    context: "查看模型上下文的内容",
    trace: "逐步查看上一个回答做了什么",
    export: "将此对话保存为 Markdown",
  },
  compactNext: "发送下一条消息时会先总结此前的内容。不会删除任何内容。",
  command: "命令",
  prompt: "提示词",
  insert: "插入",
};

export const words = (): typeof en => (t().code === "zh" ? zh : en);
export const kindOf = (served: string | undefined, command: boolean): string => served ?? (command ? words().command : words().prompt);

export interface Command {
  name: string;
  about: string;
  run: () => void;
}

/** Commands that can act now. */
export function commandsFor(view: ConversationView | null): Command[] {
  const made = Object.entries({ ...general(), ...(view?.path.length ? inside(view) : {}) });
  return made.map(([name, run]) => ({ name, about: words().about[name as CommandName], run }));
}

const opens = (dialog: DialogName) => (): void => app.open(dialog);

function general(): Partial<Record<CommandName, () => void>> {
  return {
    model: opens("models"),
    tools: opens("tools"),
    new: () => app.show(null),
    prompts: () => app.openSettings("prompts"),
    grants: () => app.openSettings("permissions"),
    help: () => app.openSettings("help"),
  };
}

function inside(view: ConversationView): Partial<Record<CommandName, () => void>> {
  const last = view.messages.get(view.path.at(-1) ?? "");
  const answer = view.blocks.findLast((block) => block.kind === "answer")?.key;
  const said = view.blocks.findLast((block) => block.kind === "said")?.key;
  const turn = last?.turn;
  return {
    diff: opens("review"),
    ...(turn ? { undo: () => void undo(turn), trace: () => app.openTrace(turn), context: opens("context") } : {}),
    compact: () => ((view.compact = true), tell(words().compactNext)),
    redo: () => void attempt(() => api.redo(view.id)),
    ...(last ? { fork: () => void app.fork(last.id) } : {}),
    ...(answer && !view.running ? { rerun: () => void attempt(() => api.rerun(answer, {})) } : {}),
    ...(said && !view.running ? { edit: () => void (view.edited = said) } : {}),
    export: () => void (location.href = api.exportAddress(view.id, "markdown")),
  };
}

async function undo(turn: string): Promise<void> {
  const done = await attempt(() => api.revertFiles(turn, false));
  if (done) tell(t().tookBack(done.paths.length));
}
