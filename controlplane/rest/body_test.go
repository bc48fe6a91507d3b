package rest

import (
	"bytes"
	"strings"
	"testing"
)

// TestBodiesTakeTheMemoryThatArrives: what a client announces reserves little, and a large body
// still arrives whole.
func TestBodiesTakeTheMemoryThatArrives(t *testing.T) {
	t.Parallel()
	const limit = 24 << 20
	body, err := readUpTo(strings.NewReader("a few bytes"), limit, limit+1)
	if err != nil || string(body) != "a few bytes" || cap(body) > 2*reserveBytes {
		t.Errorf("readUpTo of a short body = %d bytes of %d reserved, error %v, want at most %d", len(body), cap(body), err, 2*reserveBytes)
	}
	whole := bytes.Repeat([]byte("0123456789abcdef"), limit/16)
	if body, err := readUpTo(bytes.NewReader(whole), limit, limit+1); err != nil || !bytes.Equal(body, whole) {
		t.Errorf("readUpTo of a large body = %d bytes, error %v, want all %d", len(body), err, limit)
	}
}
