// Package ledger has what a job has spent on models, and its iterations. The ledger of a job is one
// text, which changes together with the job's run: see lua/include/ledger.lua. Package jobstore
// stores it.
package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
)

// keptEpochs bounds the leases whose last sequence a ledger has. Usage of an older lease is not
// counted: whether it was counted before is not known any more.
const keptEpochs = 16

// settlingSequence is the sequence before that of the first entry of a settling call without
// sequences: behind all others.
const settlingSequence = agent.MaxSequence

// Ledger is the ledger of a job. The zero value is that of a job without one.
type Ledger struct {
	version int64
	// Ended is how many iterations have ended, and By the epoch of the lease that ended the last one.
	Ended int64 `json:"ended,omitempty"`
	By    int64 `json:"by,omitempty"`
	// Marks are pairs of an epoch and its last sequence, by epoch.
	Marks [][2]int64 `json:"marks,omitempty"`
	// Total has the sums of all iterations; Lines, Provider and Model those of the current one.
	Total    agent.Sums   `json:"total"`
	Lines    []agent.Line `json:"lines,omitempty"`
	Provider string       `json:"provider,omitempty"`
	Model    string       `json:"model,omitempty"`
	// FromEnded and FromCost are Ended and the cost of Total when a limit was reached last: limits
	// count from there, so that an approval or a retry allows as much again.
	FromEnded int64     `json:"from_ended,omitempty"`
	FromCost  agent.USD `json:"from_cost,omitempty"`
	// FromBudget is the cost of Total when the limit of a budget for each job was reached last.
	FromBudget agent.USD `json:"from_budget,omitempty"`
}

// Parse parses a stored ledger, "" for none.
func Parse(text string) (*Ledger, error) {
	l := &Ledger{}
	if text == "" {
		return l, nil
	}
	version, body, _ := strings.Cut(text, " ")
	var err error
	l.version, err = strconv.ParseInt(version, 10, 64)
	if err == nil {
		err = json.Unmarshal([]byte(body), l)
	}
	if err != nil {
		return nil, fmt.Errorf("queue: malformed ledger of a job: %w", err)
	}
	return l, nil
}

// Version returns the version that was stored.
func (l *Ledger) Version() int64 { return l.version }

// Next returns l as it is stored next.
func (l *Ledger) Next() (string, error) {
	raw, err := api.EncodeJSON(l)
	if err != nil {
		return "", api.Wrap(api.CodeInternal, err, "encode a ledger")
	}
	return strconv.FormatInt(l.version+1, 10) + " " + string(raw), nil
}

// Iteration returns the number of the current iteration, from 1.
func (l *Ledger) Iteration() int64 { return l.Ended + 1 }

// Add adds the entries of a report under a lease that l does not have yet, and returns them. In a
// report without sequences, each has the next one behind all others.
func (l *Ledger) Add(epoch int64, report []agent.Usage) (added []agent.Usage) {
	at, known := slices.BinarySearchFunc(l.Marks, epoch, func(m [2]int64, epoch int64) int { return int(m[0] - epoch) })
	if !known && at == 0 && len(l.Marks) >= keptEpochs {
		return nil
	}
	last := int64(0)
	if known {
		last = l.Marks[at][1]
	}
	for i := range report {
		u := report[i]
		if u.Seq == 0 {
			u.Seq = settlingSequence + int64(i) + 1
		}
		if u.Seq <= last {
			continue
		}
		last = u.Seq
		added = append(added, u)
		l.add(&u)
	}
	if len(added) == 0 {
		return nil
	}
	if known {
		l.Marks[at][1] = last
		return added
	}
	l.Marks = slices.Insert(l.Marks, at, [2]int64{epoch, last})
	if len(l.Marks) > keptEpochs {
		l.Marks = l.Marks[1:]
	}
	return added
}

// add adds one entry to the sums.
func (l *Ledger) add(u *agent.Usage) {
	sums := u.Sums()
	l.Total = l.Total.Plus(sums)
	l.Provider, l.Model = u.Provider, u.Model
	line := agent.Line{Phase: u.Phase, Provider: u.Provider, Model: u.Model}
	at := l.line(line)
	if at < 0 && len(l.Lines) >= agent.MaxLines-1 {
		line = agent.Line{Phase: agent.Other, Provider: agent.Other, Model: agent.Other}
		at = l.line(line)
	}
	if at < 0 {
		at = len(l.Lines)
		l.Lines = append(l.Lines, line)
	}
	l.Lines[at].Sums = l.Lines[at].Plus(sums)
}

// line returns the position of a line, -1 for none.
func (l *Ledger) line(want agent.Line) int {
	return slices.IndexFunc(l.Lines, func(have agent.Line) bool {
		return have.Phase == want.Phase && have.Provider == want.Provider && have.Model == want.Model
	})
}

// Spent returns the record of the current iteration with what it has spent.
func (l *Ledger) Spent() agent.Iteration {
	it := agent.Iteration{Iteration: l.Iteration(), Provider: l.Provider, Model: l.Model, Usage: l.Lines}
	for i := range l.Lines {
		it.Sums = it.Plus(l.Lines[i].Sums)
	}
	return it
}

// End ends the current iteration under the lease of epoch.
func (l *Ledger) End(epoch int64) {
	l.Ended, l.By = l.Ended+1, epoch
	l.Lines, l.Provider, l.Model = nil, "", ""
}

// Limit returns which limit of o is reached, as the reason for which a job is dead, and the same in
// words; "" for none. ending is set if the current iteration ends.
func (l *Ledger) Limit(o *agent.Options, ending bool) (reason, words string) {
	switch {
	case o.MaxCostUSD > 0 && l.Total.CostUSD-l.FromCost >= o.MaxCostUSD:
		return agent.DeadCost, "the limit of " + o.MaxCostUSD.String() + " USD is reached: spent " + l.Total.CostUSD.String() + " USD in all"
	case ending && l.Iteration()-l.FromEnded >= o.Iterations():
		return agent.DeadIterations, "the limit of " + strconv.FormatInt(o.Iterations(), 10) + " iterations is reached"
	}
	return "", ""
}

// Restart lets the limits count from here on.
func (l *Ledger) Restart() { l.FromEnded, l.FromCost = l.Ended, l.Total.CostUSD }
