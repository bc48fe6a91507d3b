import { z } from "zod";

// The Model Context Protocol over its streamable HTTP transport: one request, one answer in
// JSON, no session.

export interface Tool {
  description: string;
  input: z.ZodObject;
  run(input: any): Promise<string>;
}

const Request = z.object({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string(),
  params: z.record(z.string(), z.any()).optional(),
});

const versions = ["2025-06-18", "2025-03-26"];

// answer returns the reply to a request, JSON as text, undefined for a notification.
export async function answer(name: string, tools: Record<string, Tool>, body: string): Promise<object | undefined> {
  const request = Request.safeParse(parse(body));
  if (!request.success) return { jsonrpc: "2.0", id: null, error: { code: -32600, message: "this is no request of JSON-RPC 2.0" } };
  const { id, method, params = {} } = request.data;
  if (id === undefined) return undefined;
  const reply = await result(name, tools, method, params);
  return { jsonrpc: "2.0", id, ...(reply === undefined ? { error: { code: -32601, message: `there is no method ${method}` } } : { result: reply }) };
}

async function result(name: string, tools: Record<string, Tool>, method: string, params: Record<string, any>): Promise<object | undefined> {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: versions.includes(params.protocolVersion) ? params.protocolVersion : versions[0],
        capabilities: { tools: {} },
        serverInfo: { name, version: "1.0.0" },
      };
    case "ping":
      return {};
    case "tools/list":
      return { tools: Object.entries(tools).map(([name, t]) => ({ name, description: t.description, inputSchema: z.toJSONSchema(t.input, { io: "input" }) })) };
    case "tools/call":
      return call(tools, params);
  }
  return undefined;
}

// call runs a tool. Its errors are for the model, which may correct its call.
async function call(tools: Record<string, Tool>, params: Record<string, any>): Promise<object> {
  const tool = Object.hasOwn(tools, params.name) ? tools[params.name] : undefined;
  if (!tool) return said(`there is no tool ${params.name}`, true);
  const input = tool.input.safeParse(params.arguments ?? {});
  if (!input.success) return said(z.prettifyError(input.error), true);
  try {
    return said(await tool.run(input.data), false);
  } catch (e) {
    cs.log.error({ tool: params.name, error: String(e) });
    return said(String(e), true);
  }
}

function said(text: string, isError: boolean): object {
  return { content: [{ type: "text", text }], isError };
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
