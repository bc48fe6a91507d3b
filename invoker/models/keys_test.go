package models_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/invoker/models/modelstest"
)

// TestKeys: a short key of a local server is no secret, and a key that no header can have is not sent.
func TestKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"none":      "main/m1 none of them",
		"none of ":  "main/m1 none of them", // blanks around a key are not part of it
		"none of t": "main/m1 ***hem",
		" ":         string(api.CodeHostSecretUnavailable),
		"a\nb":      string(api.CodeHostSecretUnavailable),
	} {
		d := newDesk(t)
		d.key = key
		d.open()
		f := modelstest.New(t, modelstest.Text(1, 1, "none of them"))
		d.put("main", at(f, ai.KindOpenAI, 0))
		if got := d.ask("main"); got != want {
			t.Errorf("key %q: got %s, want %s", key, got, want)
		}
	}
}

// TestIndexesOfToolCalls: the parts of a stream number tool calls from 0 on, which they state, whatever
// the numbers of the provider are.
func TestIndexesOfToolCalls(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := modelstest.New(t, func(w http.ResponseWriter, _ *modelstest.Request) {
		for _, index := range []int{2_000_000_000, -7, 2_000_000_000} {
			_, _ = fmt.Fprintf(w, `data: {"choices":[{"delta":{"tool_calls":[{"index":%d,"function":{"arguments":"x"}}]}}]}`+"\n\n", index)
		}
		_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
	})
	d.put("main", at(f, ai.KindOpenAI, 0))
	openAI, err := d.deltas("main", hello)
	if err != nil {
		t.Fatalf("Stream: %v", err)
	}
	f.Then(modelstest.Tool("c", "look", `{"at":2}`))
	d.put("other", at(f, ai.KindAnthropic, 0))
	anthropic, err := d.deltas("other", hello)
	if err != nil {
		t.Fatalf("Stream: %v", err)
	}
	for kind, c := range map[string]struct {
		got  []ai.Delta
		want string
	}{ai.KindOpenAI: {openAI, "0 1 0"}, ai.KindAnthropic: {anthropic, "0 0 0"}} {
		var indexes []string
		for _, delta := range c.got {
			var in struct{ Index json.RawMessage }
			raw, err := api.EncodeJSON(delta)
			if err == nil {
				err = json.Unmarshal(raw, &in)
			}
			if err != nil {
				t.Fatalf("encode and decode %+v: got error %v, want none", delta, err)
			}
			if delta.Type == ai.DeltaToolCall {
				indexes = append(indexes, string(in.Index))
			}
		}
		if got := strings.Join(indexes, " "); got != c.want {
			t.Errorf("%s: got the indexes %s, want %s", kind, got, c.want)
		}
	}
}
