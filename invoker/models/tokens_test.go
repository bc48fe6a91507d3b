package models_test

import (
	"fmt"
	"math"
	"net/http"
	"testing"

	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/invoker/models/modelstest"
)

// TestReportedTokensAreBounded: numbers of tokens that cannot be true neither overflow a sum nor become
// negative.
func TestReportedTokensAreBounded(t *testing.T) {
	t.Parallel()
	for kind, form := range map[string]string{
		ai.KindOpenAI:    `{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":%d,"completion_tokens":%[1]d,"prompt_tokens_details":{"cached_tokens":-%[1]d}}}`,
		ai.KindAnthropic: `{"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":%[1]d,"cache_read_input_tokens":-%[1]d,"cache_creation_input_tokens":%[1]d}}`,
	} {
		d := newDesk(t)
		f := modelstest.New(t, func(w http.ResponseWriter, _ *modelstest.Request) { _, _ = fmt.Fprintf(w, form, int64(math.MaxInt64)) })
		limited := at(f, kind, 0)
		limited.InputTokensPerMinute = 1000 // a negative sum would be returned to it
		d.put("main", limited)
		a, err := d.client.Chat(t.Context(), d.caller(), []byte(hello), "main")
		if err != nil {
			t.Fatalf("%s: Chat: %v", kind, err)
		}
		if u := a.Usage; u.InputTokens != agent.MaxTokens || u.OutputTokens != agent.MaxTokens || u.CacheReadTokens != 0 || u.CacheCreationTokens > agent.MaxTokens {
			t.Errorf("%s: got %+v, want at most %d of each, and no negative number", kind, u, agent.MaxTokens)
		}
	}
}
