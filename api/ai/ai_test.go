package ai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/codesous/sous/api/ai"
)

// TestPartsOfManyElements: a content of millions of empty parts is refused before it is decoded.
func TestPartsOfManyElements(t *testing.T) {
	t.Parallel()
	m := ai.Message{Role: ai.RoleUser, Content: json.RawMessage("[" + strings.Repeat("{},", 1_000_000) + "{}]")}
	if parts, err := m.Parts(); err == nil {
		t.Errorf("got %d parts, want an error", len(parts))
	}
	m.Content = json.RawMessage(`[{"type":"text","text":"x"}]`)
	if parts, err := m.Parts(); err != nil || len(parts) != 1 {
		t.Errorf("got %d parts, error %v, want 1", len(parts), err)
	}
}
