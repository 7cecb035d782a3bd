// Reads streams from a file, one a line as a list of chunks, with each version of the AI SDK, and
// prints how many texts each has made of them; whatever a version does not take is an error.
import { readFileSync } from "node:fs";

const versions = await Promise.all(["5", "6", "7"].map((version) => import(`ai${version}`)));

for (const line of readFileSync(process.argv[2], "utf-8").trimEnd().split("\n")) {
  const { chunks, approvals } = JSON.parse(line);
  for (const { readUIMessageStream, uiMessageChunkSchema } of versions.slice(approvals ? 1 : 0)) {
    const schema = typeof uiMessageChunkSchema === "function" ? uiMessageChunkSchema() : uiMessageChunkSchema;
    for (const chunk of chunks) {
      const checked = await schema?.validate(chunk);
      if (checked && !checked.success) throw new Error(`${JSON.stringify(chunk)}: ${checked.error}`);
    }
    const stream = new ReadableStream({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(chunk);
        controller.close();
      },
    });
    let last;
    const failed = (error) => {
      if (!String(error).includes("it broke")) throw error;
    };
    for await (const message of readUIMessageStream({ stream, onError: failed })) last = message;
    const parts = last?.parts ?? [];
    console.log(JSON.stringify(parts.filter(({ type }) => type === "text").map(({ text }) => text)));
  }
}
