/** The texts of the page for a read-only link. A language with a missing text does not compile. */

import { t } from "../i18n/words.svelte";

const en = {
  readOnly: "Read-only",
  live: "Live",
  frozen: "As it was when the link was made",
  omits: (what: string) => `This link leaves out ${what}.`,
  omitted: { arguments: "arguments of calls", results: "results of calls", files: "files", reasoning: "reasoning" } as Record<string, string>,
  list: (items: string[]) => new Intl.ListFormat("en").format(items),
  person: "Person",
  empty: "Nothing has been said yet.",
  endedTitle: "This link has ended",
  endedText: "It was revoked, has expired, or is not complete. Ask the person who sent it for a new one.",
  failed: "The page could not be loaded.",
};

export type SharedWords = typeof en;

const zh: SharedWords = {
  readOnly: "只读",
  live: "实时",
  frozen: "保持创建链接时的状态",
  omits: (what) => `此链接不含${what}。`,
  omitted: { arguments: "调用的参数", results: "调用的结果", files: "文件", reasoning: "思考" },
  list: (items) => new Intl.ListFormat("zh").format(items),
  person: "用户",
  empty: "还没有内容。",
  endedTitle: "此链接已失效",
  endedText: "它已被撤回、已过期，或不完整。请向发送者索取新的链接。",
  failed: "无法加载页面。",
};

export const w = (): SharedWords => (t().code === "zh" ? zh : en);
