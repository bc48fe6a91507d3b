package upgradetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The paths that the story uses: those of docs/api.md.
const (
	tenantPath = "/v1/tenants/t_upgrade"
	shop       = tenantPath + "/namespaces/shop"
)

// player sends requests to a server.
type player struct {
	t   testing.TB
	url string
	key string // the API key
}

// object is an answer in JSON.
type object = map[string]any

// do sends a request with a body in JSON, nil for none, and returns the answer. An answer
// that is not 2xx ends the test.
func (p *player) do(method, path string, body any, headers ...string) object {
	p.t.Helper()
	status, text := p.send(method, path, body, headers...)
	if status/100 != 2 {
		p.t.Fatalf("%s %s: got %d %s, want a status of 2xx", method, path, status, text)
	}
	var answer object
	if len(bytes.TrimSpace(text)) > 0 && text[0] == '{' {
		if err := json.Unmarshal(text, &answer); err != nil {
			p.t.Fatalf("%s %s answered %s: %v", method, path, text, err)
		}
	}
	return answer
}

// send is do for any answer.
func (p *player) send(method, path string, body any, headers ...string) (status int, text []byte) {
	p.t.Helper()
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			p.t.Fatalf("json.Marshal: %v", err)
		}
		content = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, content)
	if err != nil {
		p.t.Fatalf("http.NewRequestWithContext: %v", err)
	}
	req.Header.Set("Authorization", "Bearer "+p.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatalf("send %s %s: %v", method, path, err)
	}
	text, err = io.ReadAll(res.Body)
	_ = res.Body.Close() // the text is read, or err says why it is not
	if err != nil {
		p.t.Fatalf("%s %s: read the answer: %v", method, path, err)
	}
	return res.StatusCode, text
}

func (p *player) get(path string) object { p.t.Helper(); return p.do(http.MethodGet, path, nil) }

// answer is get for any status. A refusal is {"status": …, "error": …}.
func (p *player) answer(path string) object {
	p.t.Helper()
	status, text := p.send(http.MethodGet, path, nil)
	if status != http.StatusOK {
		return object{"status": float64(status), "error": string(text)}
	}
	var answer object
	if err := json.Unmarshal(text, &answer); err != nil {
		p.t.Fatalf("GET %s answered %s: %v", path, text, err)
	}
	return answer
}

func (p *player) post(path string, body any, headers ...string) object {
	p.t.Helper()
	return p.do(http.MethodPost, path, body, headers...)
}

func (p *player) put(path string, body any) object {
	p.t.Helper()
	return p.do(http.MethodPut, path, body)
}

// await asks for path until accept takes the answer.
func (p *player) await(path string, accept func(object) bool) {
	p.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		answer := p.get(path)
		if accept(answer) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("GET %s after 10 s: got %v, want the awaited answer", path, answer)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// is accepts answers whose field has a value.
func is(field string, value any) func(object) bool {
	return func(answer object) bool { return fmt.Sprint(answer[field]) == fmt.Sprint(value) }
}
