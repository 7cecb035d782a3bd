// Reads runs from a file, one a line as a list of events, with the client's own checks and its own
// folding, and prints the texts of the assistant that it has in the end.
import { readFileSync } from "node:fs";
import { AbstractAgent } from "@ag-ui/client";
import { EventSchema } from "@ag-ui/core/schemas";
import { from } from "rxjs";

class Replayed extends AbstractAgent {
  constructor(events) {
    super({ threadId: "thread" });
    this.events = events;
  }
  run() {
    return from(this.events);
  }
}

for (const line of readFileSync(process.argv[2], "utf-8").trimEnd().split("\n")) {
  const events = JSON.parse(line);
  for (const event of events) EventSchema.parse(event);
  const agent = new Replayed(events);
  await agent.runAgent({ runId: "run" });
  const said = agent.messages.filter(({ role }) => role === "assistant").map(({ content }) => content ?? "");
  console.log(JSON.stringify(said));
}
