// Runs one script after the other, each as if it were a program of its own, so that packages are loaded once:
// `node host.mjs`, with a line of JSON on standard input for each: `{"script": …, "arguments": […]}`.
// Prints a line of JSON for each: `{"printed": …}`, or `{"failed": …}`.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

class Exit extends Error {}

const write = process.stdout.write.bind(process.stdout);
const exit = process.exit.bind(process);
let printed = [];
let settle = () => {};
console.log = (...words) => void printed.push(words.join(" "));
process.exit = (status = 0) => {
  settle(status);
  throw new Exit(`it ended with status ${status}`);
};
// What a script leaves behind may still fail: that is told of the one that runs, as if it were its own.
for (const kind of ["uncaughtException", "unhandledRejection"])
  process.on(kind, (error) => void (error instanceof Exit || settle(error)));

let count = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { script, arguments: words } = JSON.parse(line);
  printed = [];
  process.argv = [process.argv[0], script, ...words];
  const ended = await new Promise((resolve) => {
    settle = resolve;
    import(`${pathToFileURL(script)}?${++count}`).then(() => resolve(0), (error) => error instanceof Exit || resolve(error));
  });
  const told = ended === 0 ? { printed: printed.join("\n") } : { failed: ended?.stack ?? String(ended) };
  write(`${JSON.stringify(told)}\n`);
}
exit(0); // whatever the scripts have left running
