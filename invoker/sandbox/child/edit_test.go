package child

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/go-sourcemap/sourcemap"
)

func TestApplyEdits(t *testing.T) {
	t.Parallel()
	// Line 1 maps columns 0, 4 and 8 to the same columns of line 1, line 2 its column 2.
	mapping := `{"version":3,"sources":["a.js"],"names":[],"mappings":"AAAA,IAAI,IAAI;EACN"}`
	script := "äb, cde, fgh\n  ijk\n" + mapPrefix + base64.StdEncoding.EncodeToString([]byte(mapping))
	at := strings.Index(script, "cde")
	out := string(applyEdits([]byte(script), []edit{{at, at, "NEW"}, {at + 1, at + 2, "dd"}}))
	if want := "äb, NEWcdde, fgh\n  ijk\n"; !strings.HasPrefix(out, want) {
		t.Fatalf("got %q, want %q", out, want)
	}
	_, encoded, _ := strings.Cut(out, mapPrefix)
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatalf("DecodeString: %v", err)
	}
	consumer, err := sourcemap.Parse("", text)
	if err != nil {
		t.Fatalf("sourcemap.Parse: %v", err)
	}
	for _, tt := range []struct{ line, column, wantLine, wantColumn int }{
		{1, 7, 1, 4}, {1, 12, 1, 8}, {2, 2, 2, 2},
	} {
		_, _, line, column, ok := consumer.Source(tt.line, tt.column)
		if !ok || line != tt.wantLine || column != tt.wantColumn {
			t.Errorf("Source(%d, %d) = %d, %d, %v, want %d, %d", tt.line, tt.column, line, column, ok, tt.wantLine, tt.wantColumn)
		}
	}
}

func TestVLQ(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, -1, 15, 16, -16, 1000, -100000} {
		if got, rest := decodeVLQ(encodeVLQ(n) + "A"); got != n || rest != "A" {
			t.Errorf("decodeVLQ(encodeVLQ(%d)) = %d, %q, want %d, A", n, got, rest, n)
		}
	}
}
