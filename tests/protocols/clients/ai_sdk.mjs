// One person at a chat of the AI SDK, without a page: `node ai_sdk.mjs VERSION URL KEY SCENE`.
// Prints what the chat shows in the end, as JSON.
const [version, api, key, scene] = process.argv.slice(2);
const {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithToolCalls,
  lastAssistantMessageIsCompleteWithApprovalResponses,
} = await import(`ai${version}`);

class State {
  status = "ready";
  error = undefined;
  messages;
  constructor(messages) {
    this.messages = messages;
  }
  pushMessage = (message) => this.messages.push(message);
  popMessage = () => this.messages.pop();
  replaceMessage = (index, message) => (this.messages[index] = message);
  snapshot = (value) => structuredClone(value);
}

class Chat extends AbstractChat {
  constructor({ messages = [], ...options }) {
    super({ ...options, state: new State(messages) });
  }
}

const seen = { data: [], errors: [], asked: 0, ran: [], requests: 0 };
const tools = { where: { description: "Where the person is.", parameters: { type: "object", properties: {} } } };

function open(messages) {
  const chat = new Chat({
    id: "a chat",
    messages,
    transport: new DefaultChatTransport({
      api,
      headers: { authorization: `Bearer ${key}` },
      body: scene === "tool" ? { tools } : {},
      fetch: (...request) => {
        seen.requests++;
        return fetch(...request);
      },
    }),
    sendAutomaticallyWhen: (state) =>
      lastAssistantMessageIsCompleteWithToolCalls(state) ||
      (lastAssistantMessageIsCompleteWithApprovalResponses?.(state) ?? false),
    onData: (part) => seen.data.push(part),
    onError: (error) => seen.errors.push(error.message),
    onToolCall: ({ toolCall }) => {
      if (toolCall.dynamic) return;
      seen.ran.push(toolCall.input);
      const result = { tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: "Rome" };
      void (chat.addToolOutput ?? chat.addToolResult)(result);
    },
  });
  return chat;
}

async function until(found) {
  const end = Date.now() + 100_000;
  while (!found()) {
    if (Date.now() > end) throw new Error(`nothing came of it: ${JSON.stringify(chat.messages)}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}

const idle = () => chat.status === "ready" || chat.status === "error";
const parts = () => chat.messages.at(-1)?.parts ?? [];
const waiting = () => parts().find((part) => part.state === "approval-requested");
const text = () => parts().map((part) => part.text ?? "").join("");

let chat = open([]);
switch (scene) {
  case "chat":
  case "tool":
    await chat.sendMessage({ text: "Hello" });
    await until(() => idle() && text().endsWith("."));
    break;
  case "cancelled": // elsewhere
    void chat.sendMessage({ text: "Hello" });
    await until(() => seen.requests > 5 || (parts().some((part) => part.state === "output-error") && idle()));
    await chat.stop();
    break;
  case "two":
    await chat.sendMessage({ text: "Hello" });
    await chat.sendMessage({ text: "And?" });
    break;
  case "reloaded": { // a page that has nothing but the name of its chat
    const metadata = { mood: "glad" };
    const parts = [{ type: "text", text: "Hello" }, { type: "data-place", id: "p", data: { city: "Rome" } }];
    await chat.sendMessage({ role: "user", parts, metadata });
    seen.before = structuredClone(chat.messages);
    const stored = await fetch(`${api}/a%20chat`, { headers: { authorization: `Bearer ${key}` } });
    chat = open(await stored.json());
    seen.after = structuredClone(chat.messages);
    await chat.sendMessage({ text: "And?" });
    break;
  }
  case "file": {
    const url = "data:text/plain;base64,aGVsbG8=";
    const files = [{ type: "file", mediaType: "text/plain", filename: "a.txt", url }];
    await chat.sendMessage({ text: "Read it.", files });
    break;
  }
  case "allow":
  case "refuse":
    await chat.sendMessage({ text: "Add." });
    await until(() => idle() && waiting());
    await chat.addToolApprovalResponse({
      id: waiting().approval.id,
      approved: scene === "allow",
      reason: scene === "allow" ? undefined : "not today",
    });
    await until(() => idle() && text().endsWith("."));
    break;
  case "asked": // version 5 has no word for approvals: the application asks, and answers over the API
    void chat.sendMessage({ text: "Add." });
    await until(() => seen.data.some((part) => part.type === "data-question"));
    {
      const question = seen.data.find((part) => part.type === "data-question").data.id;
      const answer = await fetch(new URL(`/api/questions/${question}/answer`, api), {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ verdict: "allow" }),
      });
      seen.asked = answer.status;
    }
    await until(() => idle() && text().endsWith("."));
    break;
  case "reload":
    void chat.sendMessage({ text: "Hello" });
    await until(() => text().length > 20);
    await chat.stop();
    chat = open(chat.messages.slice(0, 1)); // what an application has stored by then
    await chat.resumeStream();
    await until(() => idle() && text().endsWith("."));
    break;
  case "stop":
    void chat.sendMessage({ text: "Hello" });
    await until(() => text().length > 20);
    await chat.stop();
    await until(idle);
    await chat.sendMessage({ text: "Something else" });
    break;
  case "again":
    await chat.sendMessage({ text: "Hello" });
    await chat.regenerate();
    break;
  case "edit":
    await chat.sendMessage({ text: "Hello" });
    await chat.sendMessage({ text: "And?", messageId: chat.messages[0].id });
    break;
  default:
    throw new Error(`there is no scene ${scene}`);
}
console.log(JSON.stringify({ status: chat.status, messages: chat.messages, ...seen }));
