// Package examples contains sample functions and workers. Its tests run each of them
// as its README describes.
package examples

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	neturl "net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/codesous/sous/cmd/sous/soustest"
)

// deploy publishes the folder of an example and returns the URL that it printed.
func deploy(t *testing.T, server *soustest.Server, args ...string) string {
	t.Helper()
	cmd := exec.Command(soustest.Executable(t), append([]string{"fn", "deploy", "--url", server.URL}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("deploy %v: %v\n%s", args, err, out)
	}
	_, url, found := strings.Cut(string(out), "curl ")
	if !found {
		t.Fatalf("deploy %v: got no URL, want one in\n%s", args, out)
	}
	return strings.TrimSpace(url)
}

// call is an HTTP request with the expected answer.
type call struct {
	method, path string
	header       map[string]string
	body         string
	status       int
	want         string
}

// send sends the request and returns the answer, whose body the caller closes.
func (c call) send(t *testing.T, url string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), c.method, url+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatalf("http.NewRequestWithContext: %v", err)
	}
	for name, value := range c.header {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s %s: got error %v, want an answer", c.method, c.path, err)
	}
	return res
}

// do sends the request and compares the answer with the expected one.
func (c call) do(t *testing.T, url string) {
	t.Helper()
	res := c.send(t, url)
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("io.ReadAll: %v", err)
	}
	if res.StatusCode != c.status || string(got) != c.want {
		t.Errorf("%s %s: got %d %s, want %d %s", c.method, c.path, res.StatusCode, got, c.status, c.want)
	}
}

func TestExamples(t *testing.T) {
	t.Parallel()
	// openai-proxy calls a server of its test.
	server := soustest.Start(t, "--egress-allow", "127.0.0.0/8")
	for name, test := range map[string]func(*testing.T, *soustest.Server){
		"hello": testHello, "webhook-ts": testWebhook, "counter": testCounter, "multi-file": testMultiFile,
		"wasm-rust": testWasm, "hono-api": testHono, "streaming-sse": testStreaming, "queue-consumer": testQueueConsumer,
		"openai-proxy": testOpenAI, "react-ssr": testReact, "cloudevents": testCloudEvents,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, server)
		})
	}
}

func testHello(t *testing.T, server *soustest.Server) {
	url := deploy(t, server, "hello")
	call{"GET", "?name=Ada", nil, "", 200, `{"hello":"Ada"}`}.do(t, url)
	call{"POST", "/any/path", nil, "", 200, `{"hello":"world"}`}.do(t, url)
}

func testWasm(t *testing.T, server *soustest.Server) {
	url := deploy(t, server, "wasm-rust")
	for _, text := range []string{"", "abc", "ü", strings.Repeat("a", 119), strings.Repeat("b", 128)} {
		sum := sha256.Sum256([]byte(text))
		call{"GET", "?text=" + neturl.QueryEscape(text), nil, "", 200, `{"sha256":"` + hex.EncodeToString(sum[:]) + `"}`}.do(t, url)
	}
}

func testWebhook(t *testing.T, server *soustest.Server) {
	const secret, body = "s3cret", `{"action":"opened","repository":{"full_name":"a/ü"}}`
	server.Sous(t, "secret", "set", "WEBHOOK_SECRET", "--value-file", file(t, secret))
	url := deploy(t, server, "webhook-ts")
	signed := func(secret, body string) map[string]string {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(body))
		return map[string]string{"X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil))}
	}
	const refused = `{"error":"bad signature"}`
	call{"POST", "", signed(secret, body), body, 200, `{"accepted":"opened"}`}.do(t, url)
	call{"POST", "", signed("other", body), body, 401, refused}.do(t, url)
	call{"POST", "", signed(secret, body), body + " ", 401, refused}.do(t, url)
	call{"POST", "", nil, body, 401, refused}.do(t, url)
	call{"POST", "", map[string]string{"X-Hub-Signature-256": "sha256=12"}, body, 401, refused}.do(t, url)
	call{"POST", "", signed(secret, "{"), "{", 400, `{"error":"the body is not JSON"}`}.do(t, url)
	call{"GET", "", nil, "", 405, `{"error":"send a POST"}`}.do(t, url)
}

func testCounter(t *testing.T, server *soustest.Server) {
	url := deploy(t, server, "counter")
	call{"GET", "", nil, "", 200, `{"visits":0}`}.do(t, url)
	// A retry under the same key counts once, even with other headers.
	for _, trace := range []string{"00-1", "00-2"} {
		call{"POST", "", map[string]string{"Idempotency-Key": "first", "Traceparent": trace}, "", 200, `{"visits":1}`}.do(t, url)
	}
	// The calls run one after the other, so no visit is lost between get and set.
	done := make(chan struct{})
	const visitors = 20
	for range visitors {
		go func() {
			defer func() { done <- struct{}{} }()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
			if err != nil {
				t.Errorf("http.NewRequestWithContext: %v", err)
				return
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Errorf("Do: %v", err)
				return
			}
			if res.StatusCode != http.StatusOK {
				t.Errorf("POST: got status %d, want %d", res.StatusCode, http.StatusOK)
			}
			_ = res.Body.Close()
		}()
	}
	for range visitors {
		<-done
	}
	call{"GET", "", nil, "", 200, `{"visits":21}`}.do(t, url)
	call{"DELETE", "", nil, "", 200, `{"visits":0}`}.do(t, url)
}

func testMultiFile(t *testing.T, server *soustest.Server) {
	url := deploy(t, server, "multi-file")
	call{"GET", "?name=Ada", map[string]string{"Accept-Language": "fr, el;q=0.5, en;q=0.2"}, "", 200, `{"language":"el","greeting":"Γεια σου, Ada!"}`}.do(t, url)
	call{"GET", "", map[string]string{"Accept-Language": "de-AT"}, "", 200, `{"language":"de","greeting":"Hallo, world!"}`}.do(t, url)
	call{"GET", "?name=$%26", nil, "", 200, `{"language":"en","greeting":"Hello, $&!"}`}.do(t, url)
}
