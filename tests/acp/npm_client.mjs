// A client made with npm's SDK: `node npm_client.mjs (1|2) COMMAND ARG…`. Prints what it saw as JSON.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const [protocol, command, ...args] = process.argv.slice(2);
const acp = await import(protocol === "2" ? "@agentclientprotocol/sdk/experimental/v2" : "@agentclientprotocol/sdk");
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const seen = { text: "", updates: 0, asked: 0 };
let idle;
const ended = new Promise((resolve) => (idle = resolve));

const app = acp
  .client({ name: "npm-client" })
  .onRequest(acp.methods.client.session.requestPermission, async () => {
    seen.asked += 1;
    return { outcome: { outcome: "selected", optionId: "yes" } };
  })
  .onNotification(acp.methods.client.session.update, async ({ params }) => {
    seen.updates += 1;
    const update = params.update;
    if (update.sessionUpdate === "agent_message_chunk") seen.text += update.content.text;
    if (update.sessionUpdate === "state_update" && update.state === "idle") idle();
  });

await app.connectWith(stream, async (ctx) => {
  const info = { name: "npm-client", version: "1.0.0" };
  const hello =
    protocol === "2" ? { protocolVersion: 2, info, capabilities: {} } : { protocolVersion: 1, clientInfo: info };
  const first = await ctx.request(acp.methods.agent.initialize, hello);
  seen.protocol = first.protocolVersion;
  const session = await ctx.request(acp.methods.agent.session.new, { cwd: "/w", mcpServers: [] });
  const prompt = { sessionId: session.sessionId, prompt: [{ type: "text", text: "write it" }] };
  const answer = await ctx.request(acp.methods.agent.session.prompt, prompt);
  if (protocol === "2") await ended;
  seen.stop = answer.stopReason ?? null;
});
agent.stdin.end();
await new Promise((resolve) => agent.on("exit", resolve));
console.log(JSON.stringify(seen));
process.exit(0);
