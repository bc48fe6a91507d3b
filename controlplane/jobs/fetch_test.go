package jobs

import "testing"

// A round claims as many jobs as fit into an answer, if they are as large as the earlier ones.
func TestRoundsShrinkWithTheSizeOfJobs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ wanted, claimed, size, want int }{
		"the first":              {wanted: 1000, want: fetchRound},
		"fewer are wanted":       {wanted: 3, claimed: 64, size: 64, want: 3},
		"without payloads":       {wanted: 1000, claimed: 64, want: fetchRound},
		"small jobs":             {wanted: 1000, claimed: 64, size: 64 << 10, want: fetchRound},
		"jobs of 128 KiB":        {wanted: 1000, claimed: 64, size: 8 << 20, want: fetchRound},
		"jobs of 240 KiB":        {wanted: 1000, claimed: 64, size: 15 << 20, want: 5},
		"one byte is left":       {wanted: 1000, claimed: 64, size: fetchBytes - 1, want: 1},
		"one large job and room": {wanted: 1000, claimed: 1, size: 1 << 20, want: 16},
	} {
		if got := roundOf(tt.wanted, tt.claimed, tt.size); got != tt.want {
			t.Errorf("%s: roundOf(%d, %d, %d) = %d, want %d", name, tt.wanted, tt.claimed, tt.size, got, tt.want)
		}
	}
}
