package cli

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/traffic"
)

func topSampleAt(at time.Time, calls, ended int64) topSample {
	return topSample{
		at:        at,
		functions: []traffic.FunctionCalls{{FunctionDetail: functionNamed("idle"), Calls: 7}, {FunctionDetail: functionNamed("busy"), Calls: calls, Failures: 2, LastFailure: &traffic.FunctionFailure{AtMS: 1, Type: api.ErrException, Message: strings.Repeat("long ", 40)}}},
		queues:    []api.Queue{{Queue: "mail", Depths: map[api.JobState]int64{api.JobCompleted: ended, api.JobPending: 3, api.JobActive: 1}, OldestPendingMS: 4200}},
	}
}

func functionNamed(name string) api.FunctionDetail {
	return api.FunctionDetail{Function: api.Function{Name: name}}
}

func TestTopComputesRates(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_700_000_000, 0)
	first, last := topSampleAt(begin, 100, 50), topSampleAt(begin.Add(4*time.Second), 152, 40)
	table := newTopTable("default", first, last)
	if got := []string{table.Functions[0].Function, rateText(table.Functions[0].CallsPerSecond), rateText(table.Functions[1].CallsPerSecond)}; !cmp.Equal(got, []string{"busy", "13", "0"}) {
		t.Errorf("functions: got %v, want busy first with 13 calls a second, then 0", got)
	}
	if got := rateText(table.Queues[0].EndedPerSecond); got != "0" {
		t.Errorf("a count that shrank: got %s a second, want 0", got)
	}
	if got := newTopTable("default", first, first); got.Functions[0].CallsPerSecond != nil || got.Queues[0].EndedPerSecond != nil {
		t.Errorf("one reading: got %+v, want no rates", got)
	}
	for perSecond, want := range map[float64]string{0: "0", 0.25: "0.2", 3: "3", 9.96: "10", 1234.4: "1234"} {
		if got := rateText(&perSecond); got != want {
			t.Errorf("rateText(%v): got %s, want %s", perSecond, got, want)
		}
	}
}

func TestTopKeepsTenSecondsOfReadings(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_700_000_000, 0)
	var samples []topSample
	for i := range 20 {
		samples = keepSamples(append(samples, topSample{at: begin.Add(time.Duration(2*i) * time.Second)}))
	}
	if span := samples[len(samples)-1].at.Sub(samples[0].at); span != topWindow || len(samples) != 6 {
		t.Errorf("got %d readings of %s, want 6 of %s", len(samples), span, topWindow)
	}
}

func TestTopFitsTheTerminal(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	s := topSampleAt(at, 1, 1)
	for range 60 {
		s.functions = append(s.functions, traffic.FunctionCalls{FunctionDetail: functionNamed("more")})
		s.queues = append(s.queues, api.Queue{Queue: "more"})
	}
	for _, sample := range []topSample{{at: at}, topSampleAt(at, 1, 1), s} {
		for _, height := range []int{8, 24, 200} {
			text := newTopTable("default", sample, sample).screen("http://127.0.0.1:8080 "+strings.Repeat("x", 200), 80, height)
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			if len(lines) > height {
				t.Errorf("%d functions: got %d lines, want at most %d:\n%s", len(sample.functions), len(lines), height, text)
			}
			for _, line := range lines {
				if n := utf8.RuneCountInString(line); n > 80 {
					t.Errorf("got a line of %d characters, want at most 80: %q", n, line)
				}
			}
		}
	}
	if text := newTopTable("default", s, s).screen("title", 80, 24); strings.Count(text, " more\n") != 2 {
		t.Errorf("got a screen without the two counts of rows left out, want both in\n%s", text)
	}
}
