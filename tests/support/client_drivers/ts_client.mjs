// The TypeScript client 2.x: list the tools, make the calls; its limit of a minute begins anew with each progress notification.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const order = JSON.parse(process.argv[2]);
const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command: order.command[0], args: order.command.slice(1), env: order.env }));
const offered = (await client.listTools()).tools.map((tool) => tool.name);
const results = [];
for (const [name, args] of order.steps) {
  const options = order.helped ? { onprogress: () => {}, resetTimeoutOnProgress: true } : {};
  const found = await client.callTool({ name, arguments: args }, options);
  results.push(found.content.map((part) => part.text).join("\n"));
}
console.log(JSON.stringify({ offered, results }));
await client.close();
