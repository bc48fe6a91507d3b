import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";

export default async function () {
	const server = new McpServer({ name: "test", version: "1.0.0" });
	server.registerTool("add", { description: "adds", inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() } }, async ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }], structuredContent: { sum: a + b } }));
	server.registerResource("greeting", new ResourceTemplate("greeting://{name}", { list: undefined }), {}, async (uri, { name }) => ({ contents: [{ uri: uri.href, text: "hello " + name }] }));
	server.registerPrompt("ask", { argsSchema: { topic: z.string() } }, ({ topic }) => ({ messages: [{ role: "user", content: { type: "text", text: "about " + topic } }] }));
	const client = new Client({ name: "client", version: "1.0.0" });
	const [a, b] = InMemoryTransport.createLinkedPair();
	await Promise.all([server.connect(a), client.connect(b)]);
	const out = {
		tools: (await client.listTools()).tools,
		added: await client.callTool({ name: "add", arguments: { a: 1, b: 2 } }),
		invalid: (await client.callTool({ name: "add", arguments: { a: "x" } }).catch((err) => ({ isError: true, err }))).isError,
		resource: await client.readResource({ uri: "greeting://ada" }),
		prompt: await client.getPrompt({ name: "ask", arguments: { topic: "x" } }),
		unknown: await client.getPrompt({ name: "none" }).catch((err) => err.code),
	};
	await client.close();
	return out;
}
