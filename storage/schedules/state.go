package schedules

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

// State is the changing part of a schedule: its ticks and counters. The ticker
// writes it with each tick (lua/schedule_tick.lua); a change of the schedule writes the
// first three fields (lua/schedule_put.lua). Times are milliseconds since 1970, 0 for none.
type State struct {
	// Rev is the revision of the schedule that NextTickMS was computed for. If it is not the
	// revision of the record, a Put was interrupted; the ticker computes the tick again.
	Rev int64
	// Turn grows with every write. A writer passes the Turn that it has read, and its write
	// is refused if another one came first; 0 is no state.
	Turn int64
	// NextTickMS is the next tick to fire or to skip, 0 for none.
	NextTickMS int64
	// TickSeq counts the ticks, fired or not.
	TickSeq int64
	// LastTickMS is the last tick that fired, LastFiredMS the time at which it did, and
	// LastJobID its job.
	LastTickMS  int64
	LastFiredMS int64
	LastJobID   string
	// Fired, Skipped and Missed count ticks since the schedule was created. LastSkip is the
	// last one that was skipped, nil for none.
	Fired    int64
	Skipped  int64
	Missed   int64
	LastSkip *api.ScheduleSkip
}

// The fields of the hash.
const (
	stateLastJob  = "last_activation_id"
	stateLastSkip = "last_skip" // tick_ms and the reason
)

// numbers returns the numeric fields of the hash, by name.
func (s *State) numbers() []struct {
	name  string
	value *int64
} {
	return []struct {
		name  string
		value *int64
	}{
		{"rev", &s.Rev},
		{"turn", &s.Turn},
		{"next_tick_ms", &s.NextTickMS},
		{"tick_seq", &s.TickSeq},
		{"last_tick_ms", &s.LastTickMS},
		{"last_fired_ms", &s.LastFiredMS},
		{"fired", &s.Fired},
		{"skipped", &s.Skipped},
		{"missed", &s.Missed},
	}
}

func parseState(fields map[string]string) (s State, err error) {
	for _, number := range s.numbers() {
		text, ok := fields[number.name]
		if !ok {
			continue
		}
		*number.value, err = strconv.ParseInt(text, 10, 64)
		if err != nil {
			return s, fmt.Errorf("read %s: %w", number.name, err)
		}
		if strconv.FormatInt(*number.value, 10) != text { // a write compares the turn as text
			return s, fmt.Errorf("read %s: %q is not as it was written", number.name, text)
		}
	}
	s.LastJobID = fields[stateLastJob]
	if text, ok := fields[stateLastSkip]; ok {
		tick, reason, _ := strings.Cut(text, " ")
		s.LastSkip = &api.ScheduleSkip{Reason: reason}
		s.LastSkip.TickMS, err = strconv.ParseInt(tick, 10, 64)
		if err != nil {
			return s, fmt.Errorf("read %s: %w", stateLastSkip, err)
		}
	}
	return s, nil
}

// Words returns the fields of the stored hash, each name followed by its value.
func (s *State) Words() []string {
	var words []string
	for _, number := range s.numbers() {
		words = append(words, number.name, strconv.FormatInt(*number.value, 10))
	}
	if s.LastJobID != "" {
		words = append(words, stateLastJob, s.LastJobID)
	}
	if s.LastSkip != nil {
		words = append(words, stateLastSkip, strconv.FormatInt(s.LastSkip.TickMS, 10)+" "+s.LastSkip.Reason)
	}
	return words
}
