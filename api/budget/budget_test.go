package budget_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	_ "time/tzdata" // for machines without a time zone database

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/budget"
)

func usd(micros int64) *agent.USD { u := agent.USD(micros); return &u }

// TestValidate: bad settings are refused with their field.
func TestValidate(t *testing.T) {
	t.Parallel()
	good := budget.Settings{Scope: budget.ScopeQueue, Target: "shop/agents", DailyUSD: usd(1), Zone: "Europe/Berlin", OnExceed: budget.OnExceedAlert}
	if err := good.Validate(); err != nil {
		t.Errorf("Validate(%+v): got %v, want no error", good, err)
	}
	for field, changes := range map[string][]func(*budget.Settings){
		"daily_usd": {
			func(s *budget.Settings) { s.DailyUSD = nil }, func(s *budget.Settings) { s.DailyUSD = usd(0) },
			func(s *budget.Settings) { s.DailyUSD = usd(-1) }, func(s *budget.Settings) { s.DailyUSD = usd(int64(agent.MaxUSD) + 1) },
		},
		"per_job_usd": {func(s *budget.Settings) { s.PerJobUSD = usd(0) }, func(s *budget.Settings) { s.PerJobUSD = usd(-1) }},
		"on_exceed":   {func(s *budget.Settings) { s.OnExceed = "" }, func(s *budget.Settings) { s.OnExceed = "stop" }},
		"scope":       {func(s *budget.Settings) { s.Scope = "" }, func(s *budget.Settings) { s.Scope = "job" }},
		"zone": {
			func(s *budget.Settings) { s.Zone = "" }, func(s *budget.Settings) { s.Zone = "Local" }, func(s *budget.Settings) { s.Zone = "Mars/Base" },
			func(s *budget.Settings) { s.Zone = "../UTC" }, func(s *budget.Settings) { s.Zone = strings.Repeat("x", 65) },
		},
		"target": {
			func(s *budget.Settings) { s.Scope = budget.ScopeTenant },
			func(s *budget.Settings) { s.Target = "agents" }, func(s *budget.Settings) { s.Target = "shop/" }, func(s *budget.Settings) { s.Target = "A/b" },
			func(s *budget.Settings) { s.Scope, s.Target = budget.ScopeNamespace, "" }, func(s *budget.Settings) { s.Scope = budget.ScopeNamespace },
			func(s *budget.Settings) { s.Scope, s.Target = budget.ScopeFunction, "shop/a.b" },
			func(s *budget.Settings) { s.Scope, s.Target = budget.ScopeTag, "customer" }, func(s *budget.Settings) { s.Scope, s.Target = budget.ScopeTag, "=c1" },
			func(s *budget.Settings) { s.Scope, s.Target = budget.ScopeTag, "c="+strings.Repeat("x", 129) },
		},
	} {
		for i, change := range changes {
			bad := good
			change(&bad)
			err := bad.Validate()
			var coded *api.Error
			if !errors.As(err, &coded) || coded.Code != api.CodeInvalid || coded.Fields[0].Path != field {
				t.Errorf("%s %d: got %v, want CodeInvalid for the field", field, i, err)
			}
		}
	}
}

// TestCovers: which jobs count.
func TestCovers(t *testing.T) {
	t.Parallel()
	tags := map[string]string{"customer": "c1"}
	for target, want := range map[string][4]bool{ // of shop/agents with and without tags, web/agents, shop/fn.agents
		"tenant ":              {true, true, true, true},
		"namespace shop":       {true, true, false, true},
		"queue shop/agents":    {true, true, false, false},
		"function shop/agents": {false, false, false, true},
		"tag customer=c1":      {true, false, true, true},
		"tag customer=c2":      {false, false, false, false},
	} {
		s := budget.Settings{}
		s.Scope, s.Target, _ = strings.Cut(target, " ")
		got := [4]bool{s.Covers("shop", "agents", tags), s.Covers("shop", "agents", nil), s.Covers("web", "agents", tags), s.Covers("shop", "fn.agents", tags)}
		if got != want {
			t.Errorf("%s: got %v, want %v", target, got, want)
		}
	}
}

// TestDay: a day ends at the midnight of its zone, also where clocks skip it, repeat it, or make the day
// shorter or longer.
func TestDay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ zone, at, day, next string }{
		{"UTC", "2026-11-27T00:00:00Z", "2026-11-27", "2026-11-28T00:00:00Z"},
		{"UTC", "2026-11-27T23:59:59.999Z", "2026-11-27", "2026-11-28T00:00:00Z"},
		{"Europe/Berlin", "2026-11-27T22:59:59.999Z", "2026-11-27", "2026-11-27T23:00:00Z"},
		{"Europe/Berlin", "2026-11-27T23:00:00Z", "2026-11-28", "2026-11-28T23:00:00Z"},
		{"Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29", "2026-03-29T22:00:00Z"},     // 23 hours
		{"Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25", "2026-10-25T23:00:00Z"},     // 25 hours
		{"America/Sao_Paulo", "2018-11-04T02:59:59Z", "2018-11-03", "2018-11-04T03:00:00Z"}, // the day begins at 1:00
		{"America/Sao_Paulo", "2018-02-18T01:30:00Z", "2018-02-17", "2018-02-18T03:00:00Z"}, // 23:00 comes twice
		{"America/Sao_Paulo", "2018-02-18T02:30:00Z", "2018-02-17", "2018-02-18T03:00:00Z"},
		{"America/Havana", "2026-11-01T03:30:00Z", "2026-10-31", "2026-11-01T04:00:00Z"}, // 0:00 to 1:00 comes twice
		{"America/Havana", "2026-11-01T05:30:00Z", "2026-11-01", "2026-11-02T05:00:00Z"},
		{"Pacific/Apia", "2011-12-30T09:59:00Z", "2011-12-29", "2011-12-30T10:00:00Z"}, // the 30th does not exist
		{"Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31", "2011-12-31T10:00:00Z"},
		{"Asia/Kolkata", "2026-11-27T18:29:59Z", "2026-11-27", "2026-11-27T18:30:00Z"},
	} {
		zone, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatalf("LoadLocation: %v", err)
		}
		at, err := time.Parse(time.RFC3339Nano, tt.at)
		if err != nil {
			t.Fatalf("Parse: %v", err)
		}
		day, next := budget.Day(zone, at.UnixMilli())
		if got := time.UnixMilli(next).UTC().Format(time.RFC3339); budget.DateText(day) != tt.day || got != tt.next {
			t.Errorf("%s at %s: got day %s until %s, want %s until %s", tt.zone, tt.at, budget.DateText(day), got, tt.day, tt.next)
		}
	}
}
