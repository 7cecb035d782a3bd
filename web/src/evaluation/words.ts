/** The texts of ratings and evaluations, loaded with them. A language with a missing text does not compile. */

import type { Words } from "../i18n/en";
import { t } from "../i18n/words.svelte";

const en = {
  rateGood: "Good answer",
  rateBad: "Bad answer",
  ratingNote: "What is wrong? (optional)",
  ratingSave: "Save note",
  evaluationNone: "No runs yet. Rate answers, then run dragoman eval add --rated bad and dragoman eval run.",
  evaluationRun: "Run",
  evaluationCase: "Case",
  evaluationRecorded: "Recorded",
  evaluationOnlyFailed: "Only failed",
  evaluationPassed: (passed: number, total: number) => `${passed} of ${total} passed`,
  evaluationFailed: "Failed",
  evaluationOk: "Passed",
  evaluationUnknown: "Nothing expected",
  evaluationBetter: "better",
  evaluationWorse: "worse",
  evaluationEvery: (share: string) => `${share} every time`,
  evaluationBack: "All cases",
  evaluationCall: (tool: string) => `Call of ${tool}`,
  evaluationDiverges: "First call that differs",
  evaluationSeconds: (seconds: string) => `${seconds} s`,
  evaluationAllPass: "No case failed.",
};

export type EvaluationWords = typeof en;

export const zh: EvaluationWords = {
  rateGood: "回答得好",
  rateBad: "回答得不好",
  ratingNote: "哪里不对？（可选）",
  ratingSave: "保存说明",
  evaluationNone: "还没有运行。请先评价回答，然后运行 dragoman eval add --rated bad 和 dragoman eval run。",
  evaluationRun: "运行",
  evaluationCase: "用例",
  evaluationRecorded: "记录",
  evaluationOnlyFailed: "仅失败",
  evaluationPassed: (passed, total) => `${total} 个中通过 ${passed} 个`,
  evaluationFailed: "失败",
  evaluationOk: "通过",
  evaluationUnknown: "没有期望",
  evaluationBetter: "变好",
  evaluationWorse: "变差",
  evaluationEvery: (share) => `每次都通过：${share}`,
  evaluationBack: "所有用例",
  evaluationCall: (tool) => `调用 ${tool}`,
  evaluationDiverges: "第一个不同的调用",
  evaluationSeconds: (seconds) => `${seconds} 秒`,
  evaluationAllPass: "没有失败的用例。",
};

export const evaluationWords = (words: Words = t()): EvaluationWords => (words.code === "zh" ? zh : en);
