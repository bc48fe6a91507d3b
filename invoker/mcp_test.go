package invoker_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// mcpServer is a server of the protocol's own SDK, with sessions and streamed answers.
type mcpServer struct {
	*httptest.Server
	cancelled chan struct{} // a call that ended before its time
}

func newMCPServer(t *testing.T) *mcpServer {
	t.Helper()
	s := &mcpServer{cancelled: make(chan struct{}, 10)}
	server := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1"}, nil)
	type sum struct {
		Sum int `json:"sum"`
	}
	sdk.AddTool(server, &sdk.Tool{Name: "add"}, func(ctx context.Context, r *sdk.CallToolRequest, in struct{ A, B int }) (*sdk.CallToolResult, sum, error) {
		for i := range 3 {
			if token := r.Params.GetProgressToken(); token != nil {
				if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(i + 1)}); err != nil {
					return nil, sum{}, err
				}
			}
		}
		return nil, sum{in.A + in.B}, nil
	})
	sdk.AddTool(server, &sdk.Tool{Name: "wait"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		<-ctx.Done()
		s.cancelled <- struct{}{}
		return nil, nil, ctx.Err()
	})
	server.AddResource(&sdk.Resource{URI: "a://b", Name: "b"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "a://b", Text: "grüß"}}}, nil
	})
	streams := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	mux := http.NewServeMux()
	mux.Handle("/mcp", streams)
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://localhost:1/mcp", http.StatusTemporaryRedirect)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		for session := range server.Sessions() { // those that a function has left open
			if err := session.Close(); err != nil {
				t.Errorf("close the session: got %v, want nil", err)
			}
		}
		s.Close()
	})
	return s
}

// Functions call the servers of the SDK, with what fetch permits.
func TestFunctionsCallMCPServers(t *testing.T) {
	t.Parallel()
	config := defaults()
	config.Capabilities.HTTP = &api.HTTPCapability{AllowHosts: []string{"127.0.0.1:*"}}
	config.TimeoutMS = 60_000
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), func(c *invoker.Config) { c.EgressAllow = local })
	s := newMCPServer(t)
	for name, c := range map[string]struct{ source, want string }{
		"a tool": {`const c = await cs.mcp.connect(url), seen = [];
			const r = await c.callTool("add", { A: 1, B: 2 }, { onProgress: (p) => seen.push(p.progress) });
			await c.close();
			return [c.serverInfo.name, r.structuredContent.sum, seen];`, `["sdk",3,[1,2,3]]`},
		"lists":      {`const c = await cs.mcp.connect(url); return (await c.listTools()).tools.map((t) => t.name);`, `["add","wait"]`},
		"a resource": {`const c = await cs.mcp.connect(url); return (await c.readResource("a://b")).contents[0].text;`, `"grüß"`},
		"errors": {`const c = await cs.mcp.connect(url);
			const e = await c.callTool("none").catch((e) => e); return [e.name, e.code];`, `["McpError",-32602]`},
		"a cancelled call": {`const c = await cs.mcp.connect(url), stop = new AbortController();
			const waits = c.callTool("wait", {}, { signal: stop.signal }).catch((e) => e.name);
			await c.ping();
			stop.abort();
			const name = await waits;
			await scheduler.wait(200); // for the notification
			return name;`, `"AbortError"`},
		"another host":               {`return cs.mcp.connect("http://localhost:1/mcp").catch((e) => e.code);`, `"CS_RUNTIME_CAPABILITY_DENIED"`},
		"a redirect to another host": {`return cs.mcp.connect(url.replace("/mcp", "/moved")).catch((e) => e.code);`, `"CS_RUNTIME_CAPABILITY_DENIED"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			function := "mcp" + strings.ReplaceAll(name, " ", "")
			b.publish(function, "export default async (url) => {"+c.source+"};", config)
			out := b.invoke(function, `"`+s.URL+`/mcp"`).Activation
			if got := string(out.Result); got != c.want {
				t.Errorf("got %s, %+v, want %s", got, out.Error, c.want)
			}
			if name != "a cancelled call" {
				return
			}
			select {
			case <-s.cancelled:
			case <-time.After(20 * time.Second):
				t.Error("the server's call did not end, want it cancelled")
			}
		})
	}
}
