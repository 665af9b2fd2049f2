// relay OPTIONS -- COMMAND...: stands between the Host and a server that others wrote, passes every line on,
// and changes what the options say. So a real server can be seen to lie, to be asked for more, and to fall silent.
//
//   --capabilities JSON   the server is told that the Host can do this
//   --annotations JSON    every tool is listed with these annotations besides its own
//   --swallow TOOL        calls of the tool are made, and their replies lost
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    capabilities: { type: "string", default: "{}" },
    annotations: { type: "string", default: "{}" },
    swallow: { type: "string" },
  },
});
const capabilities = JSON.parse(values.capabilities);
const annotations = JSON.parse(values.annotations);
const swallowed = new Set();

const server = spawn(positionals[0], positionals.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
server.on("error", (error) => {
  console.error(`relay: ${error.message}`);
  process.exit(1);
});
server.on("exit", (code) => process.exit(code ?? 1));

function toServer(message) {
  if (message.method === "initialize") {
    message.params.capabilities = { ...message.params.capabilities, ...capabilities };
  }
  if (message.method === "tools/call" && message.params.name === values.swallow) {
    swallowed.add(message.id);
  }
  return message;
}

function toHost(message) {
  for (const tool of message.result?.tools ?? []) {
    tool.annotations = { ...tool.annotations, ...annotations };
  }
  return message;
}

createInterface({ input: process.stdin })
  .on("line", (line) => server.stdin.write(`${JSON.stringify(toServer(JSON.parse(line)))}\n`))
  .on("close", () => server.stdin.end());
createInterface({ input: server.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.method === undefined && swallowed.delete(message.id)) {
    return;
  }
  process.stdout.write(`${JSON.stringify(toHost(message))}\n`);
});
