package jobstore

import (
	"strconv"
	"testing"

	"github.com/codesous/sous/api"
)

// The cache of summaries is bounded in bytes: a job may have a schema of 64 KiB.
func TestSummariesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	summaries, err := newSummaries()
	if err != nil {
		t.Fatalf("newSummaries: %v", err)
	}
	s := &Store{summaries: summaries}
	const jobs = 4 * summaryBytes / (64 << 10)
	for i := range jobs {
		s.Remember(Key{"t_test01", api.NewJobID()}, &Summary{Namespace: "n", Queue: strconv.Itoa(i), Schema: make([]byte, 64<<10)})
	}
	summaries.CleanUp()
	if got := summaries.WeightedSize(); got > summaryBytes || got < summaryBytes/2 {
		t.Errorf("%d summaries take %d bytes, want at most %d, and about as many", jobs, got, summaryBytes)
	}
}
