package ledger_test

import (
	"fmt"
	"testing"

	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/queue/internal/ledger"
)

func entry(seq int64, model string) agent.Usage {
	cost := agent.USD(1)
	return agent.Usage{Seq: seq, Model: model, InputTokens: 1, CostUSD: &cost}
}

// TestAddCountsEachSequenceOnce also survives the stored form.
func TestAddCountsEachSequenceOnce(t *testing.T) {
	t.Parallel()
	text := ""
	add := func(epoch int64, report ...agent.Usage) int {
		l, err := ledger.Parse(text)
		if err != nil {
			t.Fatalf("Parse(%q): %v", text, err)
		}
		n := len(l.Add(epoch, report))
		text, err = l.Next()
		if err != nil {
			t.Fatalf("Next: %v", err)
		}
		return n
	}
	for i, tt := range []struct {
		epoch  int64
		report []agent.Usage
		want   int
	}{
		{1, []agent.Usage{entry(1, "m"), entry(2, "m")}, 2},
		{1, []agent.Usage{entry(2, "m"), entry(3, "m")}, 1},
		{2, []agent.Usage{entry(1, "m")}, 1},
		{1, []agent.Usage{entry(0, "m"), entry(0, "m")}, 2},
		{1, []agent.Usage{entry(0, "m"), entry(0, "m")}, 0},
		{1, []agent.Usage{entry(4, "m")}, 0},
		{2, []agent.Usage{entry(1, "m"), entry(2, "m")}, 1},
	} {
		if got := add(tt.epoch, tt.report...); got != tt.want {
			t.Errorf("report %d: added %d entries, want %d", i, got, tt.want)
		}
	}
	l, err := ledger.Parse(text)
	if err != nil || l.Total.CostUSD != 7 || l.Version() != 7 {
		t.Errorf("ledger: got %+v, error %v, want a cost of 7 and version 7", l, err)
	}
	if _, err := ledger.Parse("x {}"); err == nil {
		t.Error("Parse of a malformed ledger: got no error, want one")
	}
}

// TestLedgersAreBounded: the leases and the lines of a ledger.
func TestLedgersAreBounded(t *testing.T) {
	t.Parallel()
	l := &ledger.Ledger{}
	for epoch := range int64(40) {
		l.Add(epoch+1, []agent.Usage{entry(1, fmt.Sprint("m", epoch))})
	}
	if len(l.Marks) != 16 || len(l.Lines) != agent.MaxLines {
		t.Errorf("got %d leases and %d lines, want 16 and %d", len(l.Marks), len(l.Lines), agent.MaxLines)
	}
	if last := l.Lines[agent.MaxLines-1]; last.Model != agent.Other || last.Entries != 40-agent.MaxLines+1 {
		t.Errorf("last line: got %+v, want the rest of the entries under %s", last, agent.Other)
	}
	if got := l.Add(3, []agent.Usage{entry(2, "m")}); len(got) != 0 || l.Total.Entries != 40 {
		t.Errorf("usage of a lease that is forgotten: got %d entries and %d in all, want none more than 40", len(got), l.Total.Entries)
	}
	sum := agent.FromNumbers([7]int64{agent.MaxSum}).Plus(agent.FromNumbers([7]int64{1}))
	if sum.InputTokens != agent.MaxSum {
		t.Errorf("sum: got %d, want %d", sum.InputTokens, int64(agent.MaxSum))
	}
}
