package documents_test

import (
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/documents"
)

// TestDecodeIsBounded: items without number are refused before they are decoded.
func TestDecodeIsBounded(t *testing.T) {
	t.Parallel()
	body := func(n int) []byte {
		return []byte(`{"namespace":"n","items":[` + strings.TrimSuffix(strings.Repeat("{},", n), ",") + `]}`)
	}
	var few, many api.DocumentBulkPut
	if err := documents.Decode(body(10_000), &few); err != nil || len(few.Items) != 10_000 {
		t.Errorf("10,000 items: got %d and error %v, want them", len(few.Items), err)
	}
	if err := documents.Decode(body(1_000_000), &many); api.ErrorCode(err) != api.CodeDocumentInvalid || len(many.Items) > 0 {
		t.Errorf("1,000,000 items: got %d and error %v, want %s", len(many.Items), err, api.CodeDocumentInvalid)
	}
}
