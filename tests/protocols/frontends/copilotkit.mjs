// One person at a front end of CopilotKit, without its components: `node copilotkit.mjs URL KEY SCENE`.
// Prints the messages that it has in the end, its state, and what went wrong, as JSON.
import { HttpAgent } from "@ag-ui/client";
import { CopilotKitCore } from "@copilotkit/core";
import { z } from "zod";

const [url, key, scene] = process.argv.slice(2);
const seen = { errors: [], ran: [], states: [], interrupts: [] };
const agent = new HttpAgent({ url, headers: { authorization: `Bearer ${key}` }, threadId: "a thread" });
const where = {
  name: "where",
  description: "Where the person is.",
  parameters: z.object({}),
  handler: async (input) => {
    seen.ran.push(input);
    return "Rome";
  },
};
const core = new CopilotKitCore({ agents__unsafe_dev_only: { default: agent }, tools: scene.startsWith("tool") ? [where] : [] });
core.subscribe({ onError: ({ error }) => void seen.errors.push(error.message) });
core.addContext({ description: "The person's name", value: "Ada" });

let interrupts = [];
agent.subscribe({
  onRunFinishedEvent: ({ event, ...more }) => {
    interrupts = more.interrupts ?? [];
    seen.interrupts.push(...interrupts.map(({ reason }) => reason));
  },
  onStateChanged: ({ state }) => void seen.states.push(structuredClone(state)),
});
const say = (content) => agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
const run = (more = {}) => core.runAgent({ agent, ...more });

switch (scene) {
  case "chat":
  case "tool":
    say("Hello");
    await run();
    break;
  case "tool-asked":
  case "allow":
  case "refuse": {
    say("Add.");
    await run();
    if (seen.ran.length) throw new Error("it ran before anybody had allowed it");
    const payload = scene === "refuse" ? { approved: false, reason: "not today" } : { approved: true };
    await run({ resume: interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload })) });
    break;
  }
  case "state":
    agent.setState({ notes: ["milk"] });
    say("Add bread.");
    await run();
    break;
  default:
    throw new Error(`there is no scene ${scene}`);
}
console.log(JSON.stringify({ messages: agent.messages, state: agent.state, ...seen }));
process.exit(0);
