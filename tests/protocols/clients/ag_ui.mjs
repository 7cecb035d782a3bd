// Somebody at an AG-UI client, without a page: `node ag_ui.mjs URL KEY SCENE`.
// Prints the messages it has in the end, and how each run ended, as JSON.
import { HttpAgent } from "@ag-ui/client";

const [url, key, scene] = process.argv.slice(2);
const headers = { authorization: `Bearer ${key}` };
const open = (messages = []) => new HttpAgent({ url, headers, threadId: "a thread", initialMessages: messages });
const seen = { outcomes: [], errors: [], custom: [], usage: [], states: [] };
const where = { name: "where", description: "Where the person is.", parameters: { type: "object", properties: {} } };

let agent = open();
let pending = [];
let interrupts = [];
const watch = {
  onRunFinishedEvent: ({ event, outcome, ...more }) => {
    seen.outcomes.push(outcome);
    seen.usage.push(...(event.usage ?? []));
    pending = more.pendingToolCallIds ?? [];
    interrupts = more.interrupts ?? [];
  },
  onRunErrorEvent: ({ event }) => void seen.errors.push(event.message),
  onStateChanged: ({ state }) => void seen.states.push(structuredClone(state)),
  onCustomEvent: ({ event }) => void seen.custom.push(event.name),
};
const say = (content) => agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
const run = (more = {}) => agent.runAgent(more, watch);
const text = () => agent.messages.filter(({ role }) => role === "assistant").at(-1)?.content ?? "";
const until = async (found) => {
  const end = Date.now() + 60_000;
  while (!found()) {
    if (Date.now() > end) throw new Error("nothing came of it");
    await new Promise((done) => setTimeout(done, 10));
  }
};

switch (scene) {
  case "chat":
    say("Hello");
    await run();
    break;
  case "two":
    say("Hello");
    await run();
    say("And?");
    await run();
    break;
  case "allow":
  case "edit":
  case "refuse": {
    say("Add.");
    await run();
    const payload = scene === "refuse" ? { approved: false, reason: "not today" } : { approved: true };
    if (scene === "edit") payload.arguments = { a: 10, b: 20 };
    await run({ resume: interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload })) });
    break;
  }
  case "tool":
    say("Where am I?");
    await run({ tools: [where] });
    for (const call of pending)
      agent.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: call, content: "Rome" });
    await run({ tools: [where] });
    break;
  case "state":
    agent.setState({ notes: { "a/b": "milk", old: 1 } });
    say("Add bread.");
    await run();
    break;
  case "connect": // the same by the client's own word for it, which each kind of agent says how to do
    agent = new (class extends HttpAgent {
      connect = (input) => this.run({ ...input, messages: [] });
    })({ url, headers, threadId: "a thread" });
    await agent.connectAgent({}, watch);
    break;
  case "forgotten": // a page that has nothing but the name of its thread
    await run();
    break;
  case "again": {
    say("Hello");
    const asked = structuredClone(agent.messages);
    const first = run().catch(() => {});
    await until(() => text().length > 20);
    agent.abortRun();
    await first;
    agent = open(asked); // a page that was loaded again, and asks for the same
    await run();
    break;
  }
  case "abort":
    say("Hello");
    {
      const first = run().catch(() => {});
      await until(() => text().length > 20);
      agent.abortRun();
      await first;
    }
    say("Something else");
    await run();
    break;
  default:
    throw new Error(`there is no scene ${scene}`);
}
console.log(JSON.stringify({ messages: agent.messages, state: agent.state, ...seen }));
