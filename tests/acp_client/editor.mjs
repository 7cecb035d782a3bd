// An editor that is played by the protocol's npm SDK: says one thing, allows what it is asked, tells what it saw.
// node editor.mjs SDK FOLDER PROGRAM …  (SDK: the folder that the package is installed in)
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdk, folder, program, ...args] = process.argv.slice(2);
const acp = await import(pathToFileURL(`${sdk}/node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js`).href);
const agent = spawn(program, args, { cwd: folder, stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const seen = { updates: [], asked: [] };

await acp
  .client({ name: "played-editor" })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    seen.updates.push(params.update);
  })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    seen.asked.push(params.options.map((option) => option.optionId));
    return { outcome: { outcome: "selected", optionId: "once" } };
  })
  .connectWith(stream, async (there) => {
    const methods = acp.methods.agent;
    const hello = await there.request(methods.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: {},
    });
    const made = await there.request(methods.session.new, { cwd: folder, mcpServers: [] });
    const prompt = [{ type: "text", text: "go" }];
    const ended = await there.request(methods.session.prompt, { sessionId: made.sessionId, prompt });
    const listed = await there.request(methods.session.list, { cwd: folder });
    const before = seen.updates.length;
    await there.request(methods.session.load, { sessionId: made.sessionId, cwd: folder, mcpServers: [] });
    Object.assign(seen, { hello, made, ended, listed, replayed: seen.updates.slice(before) });
  });
agent.kill();
process.stdout.write(JSON.stringify(seen));
process.exit(0);
