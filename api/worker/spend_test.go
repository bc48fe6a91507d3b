package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/worker"
)

// TestUsageIsSentUntilItIsConfirmed: entries go with each heartbeat until one succeeds, and the rest with
// the settlement, after heartbeats with those for which it has no room. Each has its sequence.
func TestUsageIsSentUntilItIsConfirmed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSource("0")
		w := run(t, s, worker.Config{Lease: 3 * time.Second, OnError: func(error) {}}, func(_ context.Context, j *worker.Job) error {
			if err := j.Spend(agent.Usage{Model: "first"}); err != nil {
				return err
			}
			time.Sleep(3500 * time.Millisecond) // the first heartbeat is lost, the second is not
			for range agent.MaxEntries + 1 {
				if err := j.Spend(agent.Usage{Model: "later"}); err != nil {
					return err
				}
			}
			if err := j.Spend(agent.Usage{Model: "bad", InputTokens: -1}); err == nil {
				t.Error("Spend of negative tokens: got no error, want one")
			}
			j.Continue()
			return j.Trace("steps")
		})
		time.Sleep(500 * time.Millisecond)
		s.goAway(errAway)
		time.Sleep(time.Second)
		s.goAway(nil)
		time.Sleep(6 * time.Second)
		w.end(t)
		counted := map[int64]string{}
		last := int64(0)
		count := func(usage []agent.Usage) {
			for _, u := range usage {
				if u.Seq > last { // as the queue does
					last, counted[u.Seq] = u.Seq, u.Model
				}
			}
		}
		for i := range s.beats {
			if len(s.beats[i].Usage) > agent.MaxEntries {
				t.Errorf("heartbeat: got %d entries, want at most %d", len(s.beats[i].Usage), agent.MaxEntries)
			}
			count(s.beats[i].Usage)
		}
		if len(s.acks) != 1 || len(s.acks[0].Usage) != 1 || !s.acks[0].Continue || string(s.acks[0].Trace) != `"steps"` {
			t.Fatalf("acks: got %+v, want one with the last entry, continue and a trace", s.acks)
		}
		count(s.acks[0].Usage)
		if len(counted) != agent.MaxEntries+2 || counted[1] != "first" || counted[agent.MaxEntries+2] != "later" {
			t.Errorf("counted entries: got %v, want %d", counted, agent.MaxEntries+2)
		}
		confirmed := 0
		for i := range s.beats {
			if len(s.beats[i].Usage) > 0 && s.beats[i].Usage[0].Seq == 1 {
				confirmed++
			}
		}
		if confirmed != 1 {
			t.Errorf("heartbeats with the first entry that arrived: got %d, want 1: a confirmed entry is not sent again", confirmed)
		}
	})
}
