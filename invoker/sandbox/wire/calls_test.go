package wire

import (
	"fmt"
	"testing"
)

// A name that two declarations share would reach the wrong function.
func TestCallNamesAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range []string{
		KVGet.Name, KVSet.Name, KVDel.Name, InvokeFunction.Name, SecretGet.Name, EnqueueJob.Name,
		JobProgress.Name, JobCheckpoint.Name, CadenceHeartbeat.Name, CadenceStart.Name, CadenceSignal.Name,
		DocumentPut.Name(), DocumentGet.Name(), DocumentList.Name(), DocumentDelete.Name(), DocumentBulkPut.Name(), DocumentTransact.Name(),
	} {
		if name == "" || seen[name] {
			t.Errorf("call name %q is empty or declared twice, want a name of its own", name)
		}
		seen[name] = true
	}
}

// The text of a refusal names the limit that is applied.
func TestKVTTLRangeNamesTheLimit(t *testing.T) {
	t.Parallel()
	if want := fmt.Sprintf("ttlSeconds is 1 to %d", MaxKVTTLSeconds); KVTTLRange != want {
		t.Errorf("KVTTLRange = %q, want %q", KVTTLRange, want)
	}
}
