package api_test

import (
	"math"
	"testing"

	"github.com/codesous/sous/api"
)

func TestAmountText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		path string
		n    int64
		want string
	}{
		{"max_attempts", 1000, "1,000"},
		{"items", 999, "999"},
		{"n", -1234567, "-1,234,567"},
		{"n", math.MinInt64, "-9,223,372,036,854,775,808"},
		{"timeout_ms", 0, "0 ms"},
		{"timeout_ms", 999, "999 ms"},
		{"timeout_ms", -5, "-5 ms"},
		{"limits.timeoutMs", 900_000, "900,000 ms (15 min)"},
		{"limits.timeoutMs", 900_001, "900,001 ms (15 min 1 ms)"},
		{"timeout_ms", 5_000_000, "5,000,000 ms"},
		{"timeout_ms", 5_400_000, "5,400,000 ms (1 h 30 min)"},
		{"retention_ms", 30 * 24 * 3600 * 1000, "2,592,000,000 ms (30 d)"},
		{"every_seconds", 90, "90 s (1 min 30 s)"},
		{"ttlSeconds", 60, "60 s (1 min)"},
		{"memory_mb", 16, "16 MiB"},
		{"limits.memoryMb", 4096, "4,096 MiB (4 GiB)"},
		{"max_bytes", 65536, "65,536 B (64 KiB)"},
	} {
		if got := api.AmountText(tc.path, tc.n); got != tc.want {
			t.Errorf("AmountText(%s, %d): got %q, want %q", tc.path, tc.n, got, tc.want)
		}
	}
}

func TestInvalidRangeNamesFieldAndBounds(t *testing.T) {
	t.Parallel()
	const want = "CS_VALIDATION_FAILED: lease_ms must be from 1,000 ms (1 s) to 43,200,000 ms (12 h)"
	if got := api.InvalidRange("lease_ms", 1000, 43_200_000).Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
