/** 内置工具及其参数的说明，译成中文：按英文原文查找，所以别人的工具不会被误译。没有列出的原样显示。 */

const TEXTS: Record<string, string> = {
  "Work out an arithmetic expression. It knows + - * / // % ** and parentheses; sqrt, sin, cos, log, exp, round, abs, min and max; pi and e. Angles are in radians, log is the natural one unless it is given a base. Whole numbers are exact.":
    "计算算术表达式。支持 + - * / // % ** 和括号；sqrt、sin、cos、log、exp、round、abs、min、max；pi 和 e。角度用弧度，log 不给底数时是自然对数。整数是精确的。",
  "such as `17 * (3 + 4)`": "例如 `17 * (3 + 4)`",
  "Tell the date, the weekday and the time of day.": "给出日期、星期和时间。",
  "an IANA name, such as Europe/Vienna; left out: this machine's": "IANA 名称，例如 Asia/Shanghai；不填则用本机的时区",
  "Keep a list of what is to be done in this conversation. Each call gives the whole list anew.": "记录此对话中要做的事。每次调用都给出整份清单。",
  "One thing to do.": "一件要做的事。",
  "all of them, also those already done": "全部事项，也包括已完成的",
  "Ask the person something that only they can decide, and wait for the answer.": "向用户询问只有用户能决定的事，并等待回答。",
  "answers to choose from; left out: they write what they like": "可选的回答；不填则由用户自由填写",
  "List a folder of the workspace: folders end in /, files are followed by their size in bytes.": "列出工作区中的一个文件夹：文件夹以 / 结尾，文件后面是字节数。",
  "a folder, relative to the workspace; `.` is the workspace": "文件夹，相对于工作区；`.` 是工作区本身",
  "Read a text file of the workspace. The first line of the result says which lines these are, how many there are, and the file's version, which edit_file and write_file ask for.":
    "读取工作区中的文本文件。结果的第一行说明是哪些行、共有多少行，以及 edit_file 和 write_file 需要的文件版本。",
  "relative to the workspace": "相对于工作区",
  "the first line wanted": "从第几行开始",
  "how many lines": "多少行",
  "Write a whole text file in the workspace. Leave `version` out for a new file; a file that exists is replaced only if it still is the version you read. For a small change use edit_file.":
    "在工作区中写入整个文本文件。新文件不填 `version`；已有的文件只有仍是读到的版本时才会被替换。小改动请用 edit_file。",
  "relative to the workspace; folders are made as needed": "相对于工作区；需要时会创建文件夹",
  "the whole new text of the file": "文件的全部新内容",
  "for a file that exists: the version that read_file gave": "对已有的文件：read_file 给出的版本",
  "Replace a piece of text in a file of the workspace. `old` must occur exactly once (give more lines around it until it does), unless `everywhere` is true. The result gives the new version, for the next edit.":
    "替换工作区中某个文件里的一段文字。`old` 必须恰好出现一次（可多给几行上下文），除非 `everywhere` 为真。结果给出新的版本，供下次编辑使用。",
  "One of several edits.": "多处编辑中的一处。",
  "the text to replace": "要替换的文字",
  "the text to put there": "换成的文字",
  "replace every occurrence": "替换每一处",
  "the version that read_file, or your last edit of the file, gave": "read_file 或上次编辑此文件时给出的版本",
  "the text to replace, as it is in the file": "要替换的文字，与文件中的一致",
  "replace every occurrence, not the only one": "替换每一处，而不是唯一的一处",
  "several edits, in order, instead of old and new": "按顺序的多处编辑，代替 old 和 new",
  "Change, add, delete or rename text files of the workspace by a patch. The lines around a change must be as they are in the file. Either all of it is applied, or nothing, and the result says why. A file that was changed since you read it is refused: read it again.":
    "用补丁修改、添加、删除或重命名工作区中的文本文件。改动前后的行必须与文件中的一致。要么全部应用，要么什么都不做，并在结果中说明原因。读过之后又变了的文件会被拒绝：请重新读取。",
  "a unified diff, or *** Begin Patch … *** End Patch; with paths in the workspace": "统一格式的差异，或 *** Begin Patch … *** End Patch；路径相对于工作区",
  "Find files by name. `*` is any part of a name, `?` one character, `**` any folders. Paths in the result start at the workspace. Left out: what .gitignore and .ignore files name (unless path is in it), version control, node_modules, __pycache__, .venv, links.":
    "按名称查找文件。`*` 是名称的任意部分，`?` 是一个字符，`**` 是任意文件夹。结果中的路径从工作区开始。不包括：.gitignore 和 .ignore 文件列出的内容（除非 path 在其中）、版本控制、node_modules、__pycache__、.venv、链接。",
  "`*.py`: in this folder; `**/*.py`: also in all below": "`*.py`：在此文件夹中；`**/*.py`：也包括其下所有文件夹",
  "the folder to look in": "要查找的文件夹",
  "Search text files line by line. The result has PATH:LINE: TEXT for each line that matches, with paths that start at the workspace. Left out: binary files, files over 1 MB, what .gitignore and .ignore files name (unless path is in it), version control, node_modules, __pycache__, .venv, links.":
    "逐行搜索文本文件。每个匹配的行在结果中写作 路径:行号: 文字，路径从工作区开始。不包括：二进制文件、超过 1 MB 的文件、.gitignore 和 .ignore 文件列出的内容（除非 path 在其中）、版本控制、node_modules、__pycache__、.venv、链接。",
  "a regular expression, as Python knows them": "正则表达式，与 Python 的相同",
  "the folder or file to search": "要搜索的文件夹或文件",
  "which files, as for glob": "哪些文件，写法与 glob 相同",
  "Run a shell command in the workspace. The result is its exit status and what it printed. Nothing can be typed into it, and whatever it leaves running is ended when it ends.":
    "在工作区中运行 shell 命令。结果是退出状态和它打印的内容。无法向它输入，它留下的进程会随它一起结束。",
  "a line for /bin/sh": "交给 /bin/sh 的一行",
  seconds: "秒",
  "only after [cage] refused something: write:PATH/*, read:PATH, net:HOST:PORT, or outside to run without the cage; a person is asked":
    "仅在 [cage] 拒绝之后使用：write:路径/*、read:路径、net:主机:端口，或用 outside 在沙箱外运行；会询问用户",
  "Read the text of a web page, or of a text file on the web.": "读取网页或网上文本文件的文字。",
  "beginning with https:// or http://": "以 https:// 或 http:// 开头",
  "Run JavaScript in the person's browser and get what it returns and prints.": "在用户的浏览器中运行 JavaScript，得到它返回和打印的内容。",
  "the body of an async function: `return` what is wanted. There is no network and no page; `await files.read(path)`, `files.write(path, text)` and `files.list(path)` reach the files":
    "异步函数的函数体：用 `return` 返回结果。没有网络，也没有页面；用 `await files.read(path)`、`files.write(path, text)` 和 `files.list(path)` 访问文件",
  "List the files that live in the person's browser.": "列出用户浏览器中的文件。",
  "a folder of the browser's files; empty for all": "浏览器文件中的文件夹；留空则为全部",
  "Read a text file that lives in the person's browser.": "读取用户浏览器中的文本文件。",
  "a text file of the browser's files": "浏览器文件中的文本文件",
  "Write a text file that lives in the person's browser.": "写入用户浏览器中的文本文件。",
  "the file; folders are made as needed": "文件；需要时会创建文件夹",
  "everything that is to be in it": "文件的全部内容",
  "Make a picture from words. Say in the prompt all that is to be seen, and in which style.": "根据文字生成图片。请在提示词中说明要看到的一切以及风格。",
  "such as 1024x1536, or auto": "例如 1024x1536，或 auto",
  "Change a picture of this conversation, or make one of several. Without names, the latest is changed.": "修改此对话中的图片，或把几张合成一张。不给名称时修改最新的一张。",
  "names of pictures of this conversation": "此对话中图片的名称",
  "the name of a mask, where one was attached": "蒙版的名称（如果添加了蒙版）",
  "Speak a text aloud: the person hears it.": "朗读一段文字：用户会听到。",
  "a voice of the model's, where one is wanted": "模型的某个声音（如果需要）",
  "how it is to sound": "朗读的语气",
  "Write down what is spoken in a recording of this conversation.": "把此对话中录音所说的内容写下来。",
  "the name of a file of this conversation; without it, the latest": "此对话中文件的名称；不填则用最新的",
  "that is spoken, such as en": "所说的语言，例如 zh",
  "Run a Python program in which the other tools are functions.": "运行一个 Python 程序，其他工具在其中是函数。",
  "Read a part of an earlier result that was shown only in part.": "读取先前只显示了一部分的结果。",
  "the id of the call, as the note in the shortened result gives it": "调用的编号，见被缩短的结果中的说明",
  "Give a piece of work to another agent, which does it in a conversation of its own and answers once. It knows nothing of this one: say all it needs.":
    "把一件工作交给另一个智能体，它在自己的对话中完成并回答一次。它不知道此对话的内容：请说明它需要的一切。",
  "who is to do it": "由谁来做",
  "what is to be done, with everything it needs to know": "要做什么，以及它需要知道的一切",
  "Hand this conversation over to another agent, who then answers.": "把此对话移交给另一个智能体，由它来回答。",
  "who goes on": "由谁继续",
  "what they have to know, in a sentence": "对方需要知道的事，一句话",
};

const plain = (text: string): string => text.replace(/\s+/g, " ").trim();

/** 说明后面可能另有一份清单（例如智能体的名单），清单原样保留。 */
export function tool(text: string): string {
  const [, said = text, list = ""] = /^(.*?)(\n- .*)?$/s.exec(text) ?? [];
  const known = TEXTS[plain(said)];
  return known === undefined ? text : known + list;
}
