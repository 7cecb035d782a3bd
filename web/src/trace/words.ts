/** The texts of the trace, loaded with it. A language with a missing text does not compile. */

import type { Words } from "../i18n/en";
import { t } from "../i18n/words.svelte";

const en = {
  traceWhole: "Whole turn",
  tracePreparing: "Before the first request",
  tracePreparingHint: "Waiting for a place, for tools that start, and for plugins",
  traceFirstToken: "First token after",
  traceModel: "Waited for the model",
  traceTools: "Tools ran",
  traceWaited: "Waited for a person",
  traceStep: (step: number) => `Step ${step}`,
  traceRequest: "Request",
  traceAttempt: (attempt: number) => `Request, attempt ${attempt}`,
  traceAgain: (wait: string) => `asked again after ${wait}`,
  traceFirst: (after: string) => `first token after ${after}`,
  traceCompaction: "History shortened",
  traceAsked: "Question",
  traceSomebody: "a person",
  traceYou: "you",
  traceSent: (who: string) => `sent by ${who}`,
  traceAppended: (who: string) => `added to by ${who}`,
  traceStopped: (who: string) => `stopped by ${who}`,
  traceAnswered: (verdict: string, by: string) => `${verdict} by ${by}`,
  traceStillAsked: "waits for an answer",
  traceVerdicts: {
    allow: "allowed",
    reject: "rejected",
    stop: "stopped",
    release: "released",
    withhold: "withheld",
    reply: "answered",
  },
  traceOpen: "its own trace",
  traceBack: "Back",
  traceCut: "Leave out waits for people",
  traceCompare: "Compare with another turn…",
};

export type TraceWords = typeof en;

export const zh: TraceWords = {
  traceWhole: "整轮",
  tracePreparing: "首次请求之前",
  tracePreparingHint: "等待空位、工具启动和插件",
  traceFirstToken: "首个词元用时",
  traceModel: "等待模型",
  traceTools: "工具运行",
  traceWaited: "等待人",
  traceStep: (step) => `第 ${step} 步`,
  traceRequest: "请求",
  traceAttempt: (attempt) => `请求,第 ${attempt} 次`,
  traceAgain: (wait) => `${wait} 后重试`,
  traceFirst: (after) => `${after} 后出现首个词元`,
  traceCompaction: "历史已压缩",
  traceAsked: "提问",
  traceSomebody: "有人",
  traceYou: "你",
  traceSent: (who) => `由${who}发送`,
  traceAppended: (who) => `由${who}追加`,
  traceStopped: (who) => `由${who}停止`,
  traceAnswered: (verdict, by) => `${by}${verdict}`,
  traceStillAsked: "等待回答",
  traceVerdicts: {
    allow: "已允许",
    reject: "已拒绝",
    stop: "已停止",
    release: "已放行",
    withhold: "已扣留",
    reply: "已回答",
  },
  traceOpen: "查看其追踪",
  traceBack: "返回",
  traceCut: "略去等待人的时间",
  traceCompare: "与另一回合比较…",
};

export const traceWords = (words: Words = t()): TraceWords => (words.code === "zh" ? zh : en);
