// One person at a page of assistant-ui, drawn into jsdom: `node assistant_ui.mjs URL KEY SCENE`.
// Prints the messages that its runtime shows in the end, as JSON. The address names the protocol: AI SDK or AG-UI.
import { JSDOM } from "jsdom";

const [url, key, scene] = process.argv.slice(2);
const { window } = new JSDOM("<!doctype html><div id=root></div>", { url: "http://localhost/", pretendToBeVisual: true });
for (const name of ["window", "document", "HTMLElement", "Element", "Node", "MutationObserver", "ResizeObserver"])
  globalThis[name] = name === "window" ? window : window[name];

const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");
const { AssistantRuntimeProvider, useAssistantTool } = await import("@assistant-ui/react");
const { AssistantChatTransport, useChatRuntime } = await import("@assistant-ui/react-ai-sdk");
const { flushSync } = await import("react-dom");
const { HttpAgent } = await import("@ag-ui/client");
const { useAgUiRuntime } = await import("@assistant-ui/react-ag-ui");
const ai = await import("ai");

const seen = { errors: [], ran: [] };
const requests = []; // when each was made, and what came of it: told where nothing comes of a scene
const fetch = globalThis.fetch;
globalThis.fetch = async (address, options) => {
  const request = { at: Date.now(), made: `${options?.method ?? "GET"} ${address}`, body: options?.body };
  requests.push(request);
  const response = await fetch(address, options);
  Object.assign(request, { answered: Date.now(), status: response.status });
  return response;
};
const stored = new Map(); // what a page keeps in its session storage
const session = () => ({
  getStreamId: () => stored.get("stream") ?? null,
  setStreamId: (id) => void stored.set("stream", id),
  clear: () => void stored.delete("stream"),
});
let runtime;

function Where() {
  useAssistantTool({
    toolName: "where",
    description: "Where the person is.",
    parameters: { type: "object", properties: {} },
    execute: async (input) => {
      seen.ran.push(input);
      return "Rome";
    },
  });
  return null;
}

const headers = { authorization: `Bearer ${key}` };
const agent = new HttpAgent({ url, headers, threadId: "a thread" });
const failed = (error) => void seen.errors.push(error.message);
const useRuntime = url.includes("/ag-ui") ? () => useAgUiRuntime({ agent, onError: failed }) : useAiSdk;

function useAiSdk(storage) {
  return useChatRuntime({
    transport: new AssistantChatTransport({
      api: url,
      headers,
      // One that reads a whole stream before it draws again asks for it anew, beside the result that it sends by
      // itself, and shows whichever comes last: where a page runs tools, this would depend on who is faster.
      ...(scene === "tool" ? {} : { resumable: { storage, resumeApi: (id) => `${url}/${id}/stream` } }),
    }),
    sendAutomaticallyWhen: (state) =>
      ai.lastAssistantMessageIsCompleteWithToolCalls(state) ||
      ai.lastAssistantMessageIsCompleteWithApprovalResponses(state),
    onError: failed,
  });
}

function Page({ storage }) {
  runtime = useRuntime(storage);
  return createElement(AssistantRuntimeProvider, { runtime }, scene === "tool" ? createElement(Where) : null);
}

function open() {
  const root = createRoot(window.document.getElementById("root"));
  root.render(createElement(Page, { storage: session() }));
  return root;
}

async function until(found) {
  const end = Date.now() + 100_000;
  for (let value; ; ) {
    if ((value = found())) return value;
    if (Date.now() > end) throw new Error(`nothing came of it: ${JSON.stringify([messages(), seen, requests])}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}

const messages = () => runtime?.thread.getState().messages ?? [];
// Over AG-UI each reply of a turn is a message.
const answer = () => messages().slice(messages().findLastIndex(({ role }) => role === "user") + 1);
const parts = () => answer().flatMap(({ content }) => content);
const text = () => parts().map((part) => part.text ?? "").join("");
const idle = () => runtime && !runtime.thread.getState().isRunning;
const answered = () => idle() && text().endsWith(".");
const say = async (words) => {
  await until(() => runtime && !runtime.thread.getState().isDisabled && !runtime.thread.getState().isLoading);
  runtime.thread.append(words);
};

let root = open();
switch (scene) {
  case "tool":
    await until(() => runtime?.thread.getModelContext().tools?.where); // React adds it a moment after the page
  case "chat":
    await say("Hello");
    await until(answered);
    break;
  case "two":
    await say("Hello");
    await until(answered);
    await say("And?");
    await until(() => messages().filter(({ role }) => role === "user").length === 2 && answered());
    break;
  case "allow":
  case "refuse": {
    await say("Add.");
    const asked = () => (messages().at(-1)?.content ?? []).findIndex((part) => part.approval && part.approval.approved === undefined);
    const reason = scene === "allow" ? undefined : "not today";
    let tried = 0;
    await until(() => {
      if (idle() && asked() >= 0 && Date.now() - tried > 3_000) {
        // A click in the moment in which the client takes in the end of a stream is lost: a person clicks again.
        tried = Date.now();
        const message = runtime.thread.getMessageByIndex(messages().length - 1);
        void message.getMessagePartByIndex(asked()).respondToToolApproval({ approved: scene === "allow", reason });
      }
      return answered();
    });
    break;
  }
  case "reload":
    await say("Hello");
    await until(() => text().length > 20);
    root.unmount(); // the page goes, and comes again with what it had stored
    runtime = undefined;
    root = open();
    await until(() => text().length > 20 && answered());
    break;
  case "stop":
    await say("Hello");
    await until(() => text().length > 20);
    runtime.thread.cancelRun();
    await until(idle);
    await say("Something else");
    await until(() => messages().filter(({ role }) => role === "user").length === 2 && answered());
    break;
  default:
    throw new Error(`there is no scene ${scene}`);
}
const shown = JSON.stringify({ messages: messages(), answer: parts(), ...seen });
flushSync(() => root.unmount()); // its tools would run for the next page of this process
await new Promise((done) => setTimeout(done, 50)); // React takes them away a moment later
console.log(shown);
process.exit(0);
