// One conversation of the TypeScript SDK's client: road, packages' folder, then an address and a token, or a command.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [generation, folder, road, ...rest] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

async function parts() {
  if (generation === "2") {
    const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
    const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
    return { Client, StreamableHTTPClientTransport, StdioClientTransport };
  }
  const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
  return { Client, StreamableHTTPClientTransport, StdioClientTransport };
}

const { Client, StreamableHTTPClientTransport, StdioClientTransport } = await parts();
const { CHARON_TOKEN, PYTHONPATH } = process.env;
const transport =
  road === "http"
    ? new StreamableHTTPClientTransport(new URL(rest[0]), {
        requestInit: { headers: { Authorization: `Bearer ${CHARON_TOKEN}` } },
      })
    : new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: { CHARON_TOKEN, PYTHONPATH } });
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const call = async (name, args) => (await client.callTool({ name, arguments: args })).structuredContent;
const ops = [{ op_type: "add_memory", payload: { memory_id: "a", content: "Releases go out on Fridays." } }];
const made = await call("memory_changeset_create", { message: "notes", read_head: true, ops });
const status = await call("memory_status", {});
const refused = await client.callTool({ name: "memory_changeset_create", arguments: { message: "x", ops: [{}] } });
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), made, status, refused: refused.isError }));
