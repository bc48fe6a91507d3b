package child

import "github.com/dop251/goja"

// csMCP is cs.mcp, clients of MCP servers. It is written in JavaScript, over fetch: the host sees
// nothing but requests to hosts that the manifest names.
func csMCP(r *realm) goja.Value {
	return r.newNamespace([]row{{"connect", function("connect", 2, mcpConnect)}})
}

// mcpConnect opens a connection and answers its client:
//
//	const docs = await cs.mcp.connect("https://mcp.example.com/mcp", {secret: "DOCS_KEY"});
//	const { content } = await docs.callTool("search", { query: "tides" });
//
// The functions that it is given are not the global ones, which the script may have replaced.
func mcpConnect(r *realm, call goja.FunctionCall) goja.Value {
	request := r.newFunction("fetch", 1, func(call goja.FunctionCall) goja.Value { return fetch(r, call) })
	secret := r.newFunction("get", 1, func(call goja.FunctionCall) goja.Value { return secretsGet(r, call) })
	return r.callBuiltin("internal/mcp", "connect", call.Argument(0), call.Argument(1), request, secret)
}
