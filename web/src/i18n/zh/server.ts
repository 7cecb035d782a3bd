/** 服务器常说的话，译成中文。没有列出的原样显示。 */

const TABLE: [RegExp, string][] = [
  [/^(\d+) rounds? of tool calls$/, "$1 轮工具调用"],
  [/^(\d+) calls$/, "$1 次调用"],
  [/^(\d+) tokens$/, "$1 词元"],
  [/^([\d.]+) seconds$/, "$1 秒"],
  [/^there is no (?:conversation|message|turn|call|question|grant|file|provider) '([^']*)'.*$/, "没有找到 $1。"],
  [/^turn \S+ of this branch is still running: .*$/, "这个分支上还有回合在运行。"],
  [/^turn \S+ is over \((\w+)\): .*$/, "这个回合已经结束，请发送新消息。"],
  [/^question \S+ was already answered: .*$/, "这个问题已被回答。"],
  [/^question \S+ is about other arguments than the ones you answered$/, "问题的参数与你回答的不同。"],
  [/^the edited arguments do not fit: (.*)$/, "编辑后的参数不符合要求：$1"],
  [/^the arguments do not fit: (.*)$/s, "参数不符合要求：$1"],
  [/^the message is blank: .*$/, "消息是空的：请输入文字，或添加文件。"],
  [/^there is no key for (\S+(?: \S+)*?): set (.*?) in the environment.*$/, "没有 $1 的密钥：请设置环境变量 $2。"],
  [/^going back would lose what others did \((.*)\): .*$/, "撤销会丢失他人的改动（$1）：可以强制撤销，或先处理它们。"],
  [/^there is nothing to do again: .*$/, "没有可以重新应用的改动。"],
  [/^the reply of (.*) is cut off: it came to its limit of tokens$/, "$1 的回答被截断：达到了词元上限。"],
  [/^the reply of (.*) is cut off: its context is full$/, "$1 的回答被截断：上下文已满。"],
  [/^(.*) refused to answer$/, "$1 拒绝回答。"],
  [/^(.*) sent an empty reply$/, "$1 给出了空的回答。"],
  [/^the provider broke off the reply of (.*)$/, "提供方中断了 $1 的回答。"],
  [/^no price is known for (.*): the limit of (.*) cannot be kept$/, "不知道 $1 的价格，无法遵守 $2 的上限。"],
  [/^(allow|ask|deny) (\S+) for everything$/, "$2：一切（$1）"],
  [/^(allow|ask|deny) (\S+) for '(.*)'$/, "$2：“$3”（$1）"],
  [/^turn \S+ was interrupted: .*$/, "这个回合被中断；重新打开存储后会继续。"],
  [/^A person edited this result\.$/, "有人编辑了这个结果。"],
  [/^(.*) failed: (.*)$/s, "$1 失败：$2"],
];

const ACTIONS: Record<string, string> = { "（allow）": "（允许）", "（ask）": "（先询问）", "（deny）": "（拒绝）" };

export function server(text: string): string {
  const found = TABLE.find(([pattern]) => pattern.test(text));
  if (!found) return text;
  return text.replace(found[0], found[1]).replace(/（(?:allow|ask|deny)）$/, (action) => ACTIONS[action] ?? action);
}
