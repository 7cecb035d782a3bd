// Talks to a server as OpenAI's SDK for Node does, and prints what it heard: node talk.mjs SDK URL KEY MODEL
const [sdk, baseURL, apiKey, model] = process.argv.slice(2);
const { default: OpenAI } = await import(sdk);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const parameters = { type: "object", properties: { exact: { type: "boolean" } }, additionalProperties: false };
const heard = {};

heard.models = (await client.models.list()).data.map((each) => each.id);

const runner = client.chat.completions.runTools({
  model,
  stream: true,
  messages: [{ role: "user", content: "Where am I?" }],
  tools: [{ type: "function", function: { name: "where", description: "", parameters, parse: JSON.parse, function: () => "Rome" } }],
});
heard.chat = await runner.finalContent();

const first = await client.responses.create({
  model,
  input: "Where am I?",
  tools: [{ type: "function", name: "where", description: "", parameters, strict: true }],
});
const calls = first.output.filter((item) => item.type === "function_call");
heard.calls = calls.map((call) => call.name);
const stream = client.responses.stream({
  model,
  previous_response_id: first.id,
  input: calls.map((call) => ({ type: "function_call_output", call_id: call.call_id, output: "Rome" })),
});
heard.deltas = "";
for await (const event of stream) {
  if (event.type === "response.output_text.delta") heard.deltas += event.delta;
}
heard.response = (await stream.finalResponse()).output_text;

const begun = await client.responses.create({ model, input: "A story", background: true });
let now = begun;
while (["queued", "in_progress"].includes(now.status)) now = await client.responses.retrieve(begun.id);
heard.background = now.output_text;

try {
  await client.chat.completions.create({ model: "gpt-nothing", messages: [{ role: "user", content: "Hi" }] });
} catch (error) {
  heard.error = [error.constructor.name, error.status, error.code];
}
console.log(JSON.stringify(heard));
