package models_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/invoker/models/modelstest"
)

// elements returns a list of so many equal elements.
func elements(n int, one string) string { return "[" + strings.Repeat(one+",", n-1) + one + "]" }

// TestRequestsOfManyElements: a text that would take far more memory once it is decoded is refused
// before that.
func TestRequestsOfManyElements(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := modelstest.New(t, modelstest.Text(1, 1, "yes"))
	d.put("main", at(f, ai.KindOpenAI, 0))
	const n, want = 1_000_000, "fewer elements than this one"
	for _, request := range []string{
		`{"messages":` + elements(n, "{}") + `}`,
		`{"messages":[{"role":"user","content":"x"}],"tools":` + elements(n, "{}") + `}`,
	} {
		_, err := d.client.Chat(t.Context(), d.caller(), []byte(request), "main")
		if api.ErrorCode(err) != api.CodeHostInvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("chat with %.60s: got error %v, want code %s with %q", request, err, api.CodeHostInvalidArgument, want)
		}
	}
	_, err := d.client.Embed(t.Context(), d.caller(), []byte(`{"input":`+elements(1_300_000, `""`)+`}`), "main")
	if api.ErrorCode(err) != api.CodeHostInvalidArgument || !strings.Contains(err.Error(), want) {
		t.Errorf("embed: got error %v, want code %s with %q", err, api.CodeHostInvalidArgument, want)
	}
	_, err = d.client.Chat(t.Context(), d.caller(), []byte(`{"messages":[{"role":"user","content":`+elements(n, "{}")+`}]}`), "main")
	if api.ErrorCode(err) != api.CodeHostInvalidArgument || len(f.Requests()) != 0 {
		t.Errorf("parts: got error %v and %d requests, want code %s and none", err, len(f.Requests()), api.CodeHostInvalidArgument)
	}
}

// TestAnswersOfManyElements is TestRequestsOfManyElements for what a provider sends.
func TestAnswersOfManyElements(t *testing.T) {
	t.Parallel()
	const want = "more elements than an answer may have"
	for kind, answers := range map[string][2]string{
		ai.KindOpenAI:    {`{"choices":` + elements(300_000, "{}") + `}`, `{"choices":[{"delta":{"tool_calls":` + elements(300_000, "{}") + `}}]}`},
		ai.KindAnthropic: {`{"stop_reason":"end_turn","content":` + elements(300_000, "{}") + `}`, `{"type":"content_block_start","content_block":{"content":` + elements(300_000, "{}") + `}}`},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			f := modelstest.New(t, func(w http.ResponseWriter, r *modelstest.Request) {
				if r.Stream() {
					_, _ = fmt.Fprintf(w, "data: %s\n\n", answers[1])
					return
				}
				_, _ = fmt.Fprint(w, answers[0])
			})
			d.put("main", at(f, kind, 0))
			_, err := d.client.Chat(t.Context(), d.caller(), []byte(hello), "main")
			if api.ErrorCode(err) != api.CodeHostAIFailed || !strings.Contains(err.Error(), want) {
				t.Errorf("chat: got error %v, want code %s with %q", err, api.CodeHostAIFailed, want)
			}
			_, err = d.client.Stream(t.Context(), d.caller(), []byte(hello), "main")
			if api.ErrorCode(err) != api.CodeHostAIFailed || !strings.Contains(err.Error(), want) {
				t.Errorf("stream: got error %v, want code %s with %q", err, api.CodeHostAIFailed, want)
			}
		})
	}
}
