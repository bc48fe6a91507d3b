package examples

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/codesous/sous/cmd/sous/soustest"
)

const openAIKey = "sk-of-the-test"

// upstream behaves like the API of OpenAI. The content of the first message chooses how.
type upstream struct {
	t *testing.T

	mu    sync.Mutex
	calls map[string]int
}

// count returns how many requests had the content, with the one that is counted now.
func (u *upstream) count(content string, add int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls[content] += add
	return u.calls[content]
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		u.t.Errorf("upstream: reading the body: got error %v, want none", err)
	}
	if got, want := r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"), "POST /v1/chat/completions Bearer "+openAIKey; got != want {
		u.t.Errorf("upstream: got request %q, want %q", got, want)
	}
	content := ""
	for _, name := range []string{"hello", "busy once", "always busy", "broken", "cut", "short"} {
		if want := `{"model":"test-model","messages":[{"role":"user","content":"` + name + `"}],"max_completion_tokens":1000,"stream":true}`; string(body) == want {
			content = name
		}
	}
	n := u.count(content, 1)
	switch {
	case content == "":
		u.t.Errorf("upstream: got body %s, want the model, one known message, the limit of tokens and stream", body)
		w.WriteHeader(http.StatusBadRequest)
	case content == "always busy" || content == "busy once" && n == 1:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After-Ms", "1")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}`)
	case content == "broken":
		w.Header().Set("X-Should-Retry", "false")
		http.Error(w, `{"error":{"message":"The server had an error","type":"server_error"}}`, http.StatusInternalServerError)
	default:
		u.stream(w, content)
	}
}

// stream writes the chunks of an answer. That to "cut" loses its connection in the middle, and
// that to "short" ends in order without a reason and without the end marker.
func (u *upstream) stream(w http.ResponseWriter, content string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	send := func(event string) {
		_, _ = io.WriteString(w, "data: "+event+"\n\n") // the proxy may have left
		_ = http.NewResponseController(w).Flush()
	}
	send(chunk(`{"role":"assistant","content":""}`, "null"))
	send(chunk(`{"content":"Hello, "}`, "null"))
	switch content {
	case "cut":
		panic(http.ErrAbortHandler)
	case "short":
		return
	}
	send(chunk(`{"content":"Ada 🐈"}`, "null"))
	send(chunk(`{}`, `"stop"`))
	send("[DONE]")
}

func chunk(delta, finish string) string {
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"test-model",`+
		`"choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}]}`, delta, finish)
}

func testOpenAI(t *testing.T, server *soustest.Server) {
	u := &upstream{t: t, calls: map[string]int{}}
	fake := httptest.NewServer(u)
	t.Cleanup(fake.Close)
	config := `{"env":{"OPENAI_BASE_URL":"` + fake.URL + `/v1","OPENAI_MODEL":"test-model"},` +
		`"capabilities":{"secrets":["OPENAI_API_KEY"],"http":{"allowHosts":["127.0.0.1:*"]}}}`
	url := deployPackages(t, server, "openai-proxy", "--config", config)
	server.Sous(t, "secret", "set", "OPENAI_API_KEY", "--value-file", file(t, openAIKey))

	var whole strings.Builder
	for _, event := range []string{
		chunk(`{"role":"assistant","content":""}`, "null"), chunk(`{"content":"Hello, "}`, "null"),
		chunk(`{"content":"Ada 🐈"}`, "null"), chunk(`{}`, `"stop"`), "[DONE]",
	} {
		whole.WriteString("data: " + event + "\n\n")
	}
	ask := func(content string) call {
		return call{method: "POST", path: "/chat/completions", body: `{"model":"dear","messages":[{"role":"user","content":"` + content + `"}]}`}
	}
	for _, c := range []struct {
		content string
		status  int
		want    string
		calls   int // of the upstream
	}{
		{"hello", 200, whole.String(), 1},
		{"busy once", 200, whole.String(), 2},
		{"always busy", 429, `{"error":{"message":"too many requests"}}`, 2},
		{"broken", 502, `{"error":{"message":"the upstream failed"}}`, 1},
	} {
		ask := ask(c.content)
		ask.status, ask.want = c.status, c.want
		ask.do(t, url)
		if got := u.count(c.content, 0); got != c.calls {
			t.Errorf("%s: got %d requests to the upstream, want %d", c.content, got, c.calls)
		}
	}
	busy := ask("always busy").send(t, url)
	_ = busy.Body.Close()
	if got := busy.Header.Get("Retry-After"); got != "7" {
		t.Errorf("always busy: got Retry-After %q, want 7, as the upstream sent", got)
	}
	for _, content := range []string{"cut", "short"} {
		incomplete(t, url, ask(content))
	}
	const list = `{"error":{"message":"messages must be a list of 1 to 50"}}`
	call{"POST", "/chat/completions", nil, "{", 400, list}.do(t, url)
	call{"POST", "/chat/completions", nil, `{"messages":[]}`, 400, list}.do(t, url)
	call{"POST", "/chat/completions", nil, `{"messages":[{"role":"system","content":"a"}]}`, 400, `{"error":{"message":"a message must have a role, user or assistant, and a content"}}`}.do(t, url)
	call{"GET", "/chat/completions", nil, "", 404, `{"error":{"message":"send a POST to /chat/completions"}}`}.do(t, url)
}

// incomplete checks that an answer whose upstream ended too early does not look complete: its
// status is an error, or its connection is cut.
func incomplete(t *testing.T, url string, c call) {
	t.Helper()
	res := c.send(t, url)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if res.StatusCode == http.StatusOK && err == nil || strings.Contains(string(body), "[DONE]") {
		t.Errorf("%s: got status %d, error %v and %s, want an error and no end marker", c.body, res.StatusCode, err, body)
	}
}
