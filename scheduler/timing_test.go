package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/codesous/sous/api"
)

func mustTiming(t rapid.TB, s *api.Schedule) timing {
	t.Helper()
	timing, err := newTiming("t_test01", "default", s)
	if err != nil {
		t.Fatalf("newTiming: %v", err)
	}
	return timing
}

// ticks are those in (from, to], as the zone's clocks show them.
func ticks(t testing.TB, expression, zone, from, to string) []string {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatalf("LoadLocation: %v", err)
	}
	at := func(text string) int64 {
		moment, err := time.ParseInLocation("2006-01-02 15:04", text, location)
		if err != nil {
			t.Fatalf("ParseInLocation: %v", err)
		}
		return moment.UnixMilli()
	}
	timing := mustTiming(t, &api.Schedule{Name: "job", Cron: expression, Timezone: zone})
	var found []string
	for now, end := at(from), at(to); ; {
		now = timing.next(now)
		if now == 0 || now > end {
			return found
		}
		found = append(found, time.UnixMilli(now).In(location).Format("2006-01-02 15:04 -0700"))
	}
}

func TestCronTicks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, cron, zone, from, to string
		want                       []string
	}{
		{"spring in Berlin skips what does not exist", "30 2 * * *", "Europe/Berlin", "2026-03-27 12:00", "2026-03-30 12:00", []string{
			"2026-03-28 02:30 +0100", "2026-03-30 02:30 +0200",
		}},
		{"spring in Berlin keeps the hour behind", "0 3 * * *", "Europe/Berlin", "2026-03-28 12:00", "2026-03-29 12:00", []string{"2026-03-29 03:00 +0200"}},
		{"autumn in Berlin ticks in both", "30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-26 12:00", []string{
			"2026-10-25 02:30 +0200", "2026-10-25 02:30 +0100", "2026-10-26 02:30 +0100",
		}},
		{"autumn in Berlin by the hour", "0 * * * *", "Europe/Berlin", "2026-10-25 01:30", "2026-10-25 03:30", []string{
			"2026-10-25 02:00 +0200", "2026-10-25 02:00 +0100", "2026-10-25 03:00 +0100",
		}},
		{"spring in New York", "15 2 * * *", "America/New_York", "2026-03-07 00:00", "2026-03-09 12:00", []string{
			"2026-03-07 02:15 -0500", "2026-03-09 02:15 -0400",
		}},
		{"autumn in New York", "59 1 * * *", "America/New_York", "2026-10-31 12:00", "2026-11-01 12:00", []string{
			"2026-11-01 01:59 -0400", "2026-11-01 01:59 -0500",
		}},
		{"spring on Lord Howe, by half an hour", "15,45 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00", "2026-10-04 12:00", []string{"2026-10-04 02:45 +1100"}},
		{"behind spring on Lord Howe", "0 9 * * *", "Australia/Lord_Howe", "2026-10-03 08:00", "2026-10-05 12:00", []string{
			"2026-10-03 09:00 +1030", "2026-10-04 09:00 +1100", "2026-10-05 09:00 +1100",
		}},
		{"autumn on Lord Howe", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00", "2026-04-05 12:00", []string{
			"2026-04-05 01:45 +1100", "2026-04-05 01:45 +1030",
		}},
		{"behind autumn on Lord Howe", "0 2 * * *", "Australia/Lord_Howe", "2026-04-03 12:00", "2026-04-06 12:00", []string{
			"2026-04-04 02:00 +1100", "2026-04-05 02:00 +1030", "2026-04-06 02:00 +1030",
		}},
		{"a midnight that does not exist", "0 0 * * *", "Africa/Cairo", "2026-04-22 12:00", "2026-04-25 12:00", []string{
			"2026-04-23 00:00 +0200", "2026-04-25 00:00 +0300",
		}},
		{"29 February", "0 12 29 2 *", "UTC", "2026-01-01 00:00", "2033-01-01 00:00", []string{
			"2028-02-29 12:00 +0000", "2032-02-29 12:00 +0000",
		}},
		{"29 February about 2100", "0 12 29 2 *", "UTC", "2095-01-01 00:00", "2105-01-01 00:00", []string{
			"2096-02-29 12:00 +0000", "2104-02-29 12:00 +0000",
		}},
		{"the 31st", "0 0 31 * *", "UTC", "2026-01-01 00:00", "2026-06-01 00:00", []string{
			"2026-01-31 00:00 +0000", "2026-03-31 00:00 +0000", "2026-05-31 00:00 +0000",
		}},
		{"either day where both are given", "0 0 13 * fri", "UTC", "2026-03-10 00:00", "2026-03-21 00:00", []string{
			"2026-03-13 00:00 +0000", "2026-03-20 00:00 +0000",
		}},
		{"a descriptor in a zone", "@daily", "Asia/Kathmandu", "2026-01-01 12:00", "2026-01-02 12:00", []string{"2026-01-02 00:00 +0545"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, ticks(t, c.cron, c.zone, c.from, c.to)); diff != "" {
				t.Errorf("ticks of %q in %s, -want +got:\n%s", c.cron, c.zone, diff)
			}
		})
	}
}

// TestCronIsEveryMatchingMinute compares with a walk over all minutes, in zones of
// every kind and around the changes of their clocks.
func TestCronIsEveryMatchingMinute(t *testing.T) {
	t.Parallel()
	zones := []string{
		"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "America/Sao_Paulo", "America/Havana",
		"Antarctica/Troll", "Africa/Casablanca", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia", "Asia/Pyongyang", "Asia/Tehran",
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(zones).Draw(t, "zone")
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatalf("LoadLocation: %v", err)
		}
		minute, hour := rapid.IntRange(-1, 59).Draw(t, "minute"), rapid.IntRange(-1, 23).Draw(t, "hour")
		day, weekday := rapid.IntRange(-1, 6).Draw(t, "day"), rapid.IntRange(-1, 6).Draw(t, "weekday")
		field := func(n int) string {
			if n < 0 {
				return "*"
			}
			return strconv.Itoa(n)
		}
		days := field(day)
		if day >= 0 {
			days = strconv.Itoa(1+day) + "-" + strconv.Itoa(1+day+20)
		}
		matches := func(at time.Time) bool {
			onDay, onWeekday := at.Day() >= 1+day && at.Day() <= 1+day+20, int(at.Weekday()) == weekday
			ok := onDay || onWeekday
			switch {
			case day < 0:
				ok = weekday < 0 || onWeekday
			case weekday < 0:
				ok = onDay
			}
			return ok && (minute < 0 || at.Minute() == minute) && (hour < 0 || at.Hour() == hour)
		}
		timing := mustTiming(t, &api.Schedule{Name: "job", Cron: field(minute) + " " + field(hour) + " " + days + " * " + field(weekday), Timezone: name})

		start := time.Date(rapid.IntRange(2000, 2040).Draw(t, "year"), 1, 1, 0, 0, 0, 0, zone)
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			if _, end := start.ZoneBounds(); end.After(start) {
				start = end
			}
		}
		start = start.Add(-time.Duration(rapid.IntRange(0, 3*24*60*60).Draw(t, "before")) * time.Second).In(zone)
		want := start.Truncate(time.Minute).Add(time.Minute)
		for !matches(want) {
			want = want.Add(time.Minute)
		}
		if got := timing.next(start.UnixMilli()); got != want.UnixMilli() {
			t.Fatalf("after %v: %v, want %v", start, time.UnixMilli(got).In(zone), want)
		}
	})
}

func TestIntervalsStayOnTheirGrid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := api.Schedule{
			Name:         rapid.StringMatching(api.NamePattern).Draw(t, "name"),
			EverySeconds: rapid.Int64Range(api.MinEverySeconds, api.MaxEverySeconds).Draw(t, "every"),
		}
		timing := mustTiming(t, &s)
		after := rapid.Int64Range(0, 1<<42).Draw(t, "after")
		first := timing.next(after)
		if period := s.EverySeconds * 1000; first <= after || first > after+period {
			t.Fatalf("next(%d) = %d, want at most %d later", after, first, s.EverySeconds*1000)
		}
		late := first + rapid.Int64Range(0, s.EverySeconds*1000-1).Draw(t, "late")
		if second := timing.next(late); second != first+s.EverySeconds*1000 {
			t.Fatalf("next(%d) = %d, want %d: a late read does not shift ticks", late, second, first+s.EverySeconds*1000)
		}
	})
}

func TestIntervalsSpread(t *testing.T) {
	t.Parallel()
	const schedules, share = 1000, 1000 / 60
	var seconds [60]int
	for i := range schedules {
		tick := mustTiming(t, &api.Schedule{Name: fmt.Sprintf("job-%d", i), EverySeconds: 60}).next(0)
		seconds[tick/1000%60]++
	}
	if most := slices.Max(seconds[:]); most > 3*share {
		t.Errorf("ticks in one second: got up to %d of %d (%v), want at most %d", most, schedules, seconds, 3*share)
	}
	if least := slices.Min(seconds[:]); least == 0 {
		t.Errorf("ticks in one second: got none in some of %v, want some in each", seconds)
	}
}

func TestTimingsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cron, zone string
		every      int64
		field      string
	}{
		{"", "", 0, "every_seconds"},
		{"", "", -1, "every_seconds"},
		{"", "", api.MaxEverySeconds + 1, "every_seconds"},
		{"* * * * *", "", 60, "cron"},
		{"", "UTC", 60, "timezone"},
		{"@every 1s", "", 0, "cron"},
		{"@every 1h", "", 0, "cron"},
		{"@reboot", "", 0, "cron"},
		{"@Daily", "", 0, "cron"},
		{" @daily", "", 0, "cron"},
		{"TZ=UTC 0 0 * * *", "", 0, "cron"},
		{"CRON_TZ=UTC 0 0 * * *", "", 0, "cron"},
		{"TZ=UTC", "", 0, "cron"},
		{"TZ=UTC 0 0 * *", "", 0, "cron"},
		{" ", "", 0, "cron"},
		{"* * * *", "", 0, "cron"},
		{"0 * * * * *", "", 0, "cron"},
		{"60 * * * *", "", 0, "cron"},
		{"* 24 * * *", "", 0, "cron"},
		{"* * 0 * *", "", 0, "cron"},
		{"* * * 13 *", "", 0, "cron"},
		{"* * * * 7", "", 0, "cron"},
		{"* * * * monday", "", 0, "cron"},
		{"5-1 * * * *", "", 0, "cron"},
		{"*/0 * * * *", "", 0, "cron"},
		{"*/-1 * * * *", "", 0, "cron"},
		{"+5 * * * *", "", 0, "cron"},
		{", * * * *", "", 0, "cron"},
		{"1,,2 * * * *", "", 0, "cron"},
		{"*-5 * * * *", "", 0, "cron"},
		{"1-2-3 * * * *", "", 0, "cron"},
		{"1/2/3 * * * *", "", 0, "cron"},
		{"0 0 30 2 *", "", 0, "cron"},
		{"0 0 31 4,6,9,11 *", "", 0, "cron"},
		{"0 0 1 1 *" + strings.Repeat(" ", api.MaxCronLength), "", 0, "cron"},
		{"0 0 * * *", "Local", 0, "timezone"},
		{"0 0 * * *", "localtime", 0, "timezone"},
		{"0 0 * * *", "posix/Europe/Berlin", 0, "timezone"},
		{"0 0 * * *", "../Europe/Berlin", 0, "timezone"},
		{"0 0 * * *", "/etc/localtime", 0, "timezone"},
		{"0 0 * * *", "Europe/Atlantis", 0, "timezone"},
		{"0 0 * * *", "Europe", 0, "timezone"},
		{"0 0 * * *", "CEST+2", 0, "timezone"},
		{"0 0 * * *", strings.Repeat("A", api.MaxTimezoneLength+1), 0, "timezone"},
	} {
		_, err := newTiming("t_test01", "default", &api.Schedule{Name: "job", Cron: c.cron, Timezone: c.zone, EverySeconds: c.every})
		wantField(t, fmt.Sprintf("%q %q %d", c.cron, c.zone, c.every), err, c.field)
	}
}

// wantField fails unless err is CodeInvalid for field.
func wantField(t testing.TB, what string, err error, field string) {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) || e.Code != api.CodeInvalid || len(e.Fields) != 1 || e.Fields[0].Path != field {
		t.Errorf("%s: %v, want %s of %s", what, err, api.CodeInvalid, field)
	}
}

func TestNextTicks(t *testing.T) {
	t.Parallel()
	got, err := NextTicks("t_test01", "default", &api.Schedule{Name: "job", Cron: "*/5 * * * *"}, 1, 3)
	if err != nil {
		t.Fatalf("NextTicks: %v", err)
	}
	if diff := cmp.Diff([]int64{300_000, 600_000, 900_000}, got); diff != "" {
		t.Errorf("NextTicks, -want +got:\n%s", diff)
	}
}

func BenchmarkNewTiming(b *testing.B) {
	s := api.Schedule{Name: "job", Cron: "30 2 * * 1-5", Timezone: "Europe/Berlin"}
	for b.Loop() {
		if _, err := newTiming("t_test01", "default", &s); err != nil {
			b.Fatalf("newTiming: %v", err)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	t := mustTiming(b, &api.Schedule{Name: "job", Cron: "30 2 * * 1-5", Timezone: "Europe/Berlin"})
	for b.Loop() {
		t.next(1_770_000_000_000)
	}
}
