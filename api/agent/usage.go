package agent

import (
	"strconv"
	"strings"
)

// Bounds of usage.
const (
	MaxEntries    = 32 // of one report
	MaxTokens     = 1_000_000_000
	MaxNameLength = 128 // of models, providers and phases
	MaxSequence   = 999_999_999
	// MaxLines bounds the sums of an iteration by phase, provider and model. Entries for
	// which there is no line are counted in one whose names are Other.
	MaxLines = 16
	// MaxRows bounds the sums that a tenant has of a day.
	MaxRows = 10_000
	// Other stands for names for which there is no room.
	Other = "(other)"
	// MaxSum bounds all sums: scripts of the store count exactly up to it.
	MaxSum = 1<<53 - 1
)

// Usage is an entry of a report: what one call of a model has used. Seq orders the entries of a
// lease and makes repeats harmless: an entry is counted only if its Seq is larger than those before.
// Settling calls may leave it out of all entries. Without CostUSD, the prices of the tenant decide.
type Usage struct {
	Seq                 int64  `json:"seq,omitempty"`
	Phase               string `json:"phase,omitempty"`
	Model               string `json:"model"`
	Provider            string `json:"provider,omitempty"`
	InputTokens         int64  `json:"input_tokens,omitempty"`
	OutputTokens        int64  `json:"output_tokens,omitempty"`
	CacheCreationTokens int64  `json:"cache_creation_tokens,omitempty"`
	CacheReadTokens     int64  `json:"cache_read_tokens,omitempty"`
	CostUSD             *USD   `json:"cost_usd,omitempty"`
}

// Sums are sums of entries. Unpriced counts those without a cost, for which there was no price.
type Sums struct {
	InputTokens         int64 `json:"input_tokens"`
	OutputTokens        int64 `json:"output_tokens"`
	CacheCreationTokens int64 `json:"cache_creation_tokens"`
	CacheReadTokens     int64 `json:"cache_read_tokens"`
	CostUSD             USD   `json:"cost_usd"`
	Entries             int64 `json:"entries"`
	Unpriced            int64 `json:"unpriced"`
}

// Line has the sums of one phase, provider and model.
type Line struct {
	Phase    string `json:"phase,omitempty"`
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model"`
	Sums
}

// Sums returns u as sums.
func (u *Usage) Sums() Sums {
	s := Sums{u.InputTokens, u.OutputTokens, u.CacheCreationTokens, u.CacheReadTokens, 0, 1, 0}
	if u.CostUSD == nil {
		s.Unpriced = 1
	} else {
		s.CostUSD = *u.CostUSD
	}
	return s
}

// Numbers returns the sums in the order of their fields.
func (s Sums) Numbers() [7]int64 {
	return [7]int64{s.InputTokens, s.OutputTokens, s.CacheCreationTokens, s.CacheReadTokens, int64(s.CostUSD), s.Entries, s.Unpriced}
}

// FromNumbers returns the sums of which n are the Numbers.
func FromNumbers(n [7]int64) Sums {
	return Sums{n[0], n[1], n[2], n[3], USD(n[4]), n[5], n[6]}
}

// Plus returns the sums of both, none of which exceeds MaxSum.
func (s Sums) Plus(o Sums) Sums {
	a, b := s.Numbers(), o.Numbers()
	for i := range a {
		a[i] = min(a[i]+b[i], MaxSum)
	}
	return FromNumbers(a)
}

// CheckReport returns the path, such as usage[2].model, and the rule of the first fault of a report,
// "" for none. Entries need a sequence if numbered is set.
func CheckReport(report []Usage, numbered bool) (path, rule string) {
	if len(report) > MaxEntries {
		return "usage", "must have at most " + strconv.Itoa(MaxEntries) + " entries"
	}
	last := int64(0)
	for i := range report {
		u := &report[i]
		field, rule := u.check()
		switch {
		case rule != "":
		case u.Seq < 0 || u.Seq > MaxSequence:
			field, rule = "seq", "must be from 1 to "+strconv.Itoa(MaxSequence)
		case u.Seq == 0 && numbered:
			field, rule = "seq", "is required in heartbeats: a repeat must not count twice"
		case i > 0 && (u.Seq == 0) != (last == 0):
			field, rule = "seq", "must be in all entries or in none"
		case u.Seq != 0 && u.Seq <= last:
			field, rule = "seq", "must increase from entry to entry"
		}
		if rule != "" {
			return "usage[" + strconv.Itoa(i) + "]." + field, rule
		}
		last = u.Seq
	}
	return "", ""
}

// check returns the name and the rule of the first field that is out of its range, "" for none.
func (u *Usage) check() (field, rule string) {
	for _, name := range []struct{ field, value string }{{"model", u.Model}, {"provider", u.Provider}, {"phase", u.Phase}} {
		if !validName(name.value) || name.field == "model" && name.value == "" {
			return name.field, nameRule
		}
	}
	for _, n := range []struct {
		field string
		value int64
	}{
		{"input_tokens", u.InputTokens}, {"output_tokens", u.OutputTokens},
		{"cache_creation_tokens", u.CacheCreationTokens}, {"cache_read_tokens", u.CacheReadTokens},
	} {
		if n.value < 0 || n.value > MaxTokens {
			return n.field, "must be from 0 to " + strconv.Itoa(MaxTokens)
		}
	}
	if u.CostUSD != nil && !u.CostUSD.valid() {
		return "cost_usd", usdRule
	}
	return "", ""
}

const nameRule = "must be at most 128 printable ASCII characters without blanks, and not (other)"

// validName reports whether s may be a model, a provider or a phase, of which "" is none.
func validName(s string) bool {
	return len(s) <= MaxNameLength && s != Other && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
