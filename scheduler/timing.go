package scheduler

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/codesous/sous/api"
)

// timing is the series of a schedule's ticks. It depends on the schedule alone: every replica
// computes the same ticks, in Unix milliseconds, whenever it asks.
type timing interface {
	// next returns the first tick strictly after afterMS, 0 if there is none.
	next(afterMS int64) int64
}

// newTiming returns the timing of a schedule. Error: CodeInvalid with the field's path.
func newTiming(tenant, namespace string, s *api.Schedule) (timing, error) {
	switch {
	case s.EverySeconds != 0 && s.Cron != "":
		return nil, api.InvalidField("cron", "cannot stand beside every_seconds")
	case s.Cron != "":
		return newCronTiming(s.Cron, s.Timezone)
	case s.EverySeconds < api.MinEverySeconds || s.EverySeconds > api.MaxEverySeconds:
		return nil, api.InvalidField("every_seconds", api.RangeRule("every_seconds", api.MinEverySeconds, api.MaxEverySeconds)+", or cron must be given in its place")
	case s.Timezone != "":
		return nil, api.InvalidField("timezone", "must stand beside cron")
	}
	return newInterval(s.EverySeconds*1000, tenant+"/"+namespace+"/"+s.Name), nil
}

// NextTicks returns the next ticks of s after afterMS, in milliseconds since 1970, at most n.
// Error: CodeInvalid if its timing is invalid.
func NextTicks(tenant, namespace string, s *api.Schedule, afterMS int64, n int) ([]int64, error) {
	t, err := newTiming(tenant, namespace, s)
	if err != nil {
		return nil, err
	}
	ticks := make([]int64, 0, n)
	for range n {
		afterMS = t.next(afterMS)
		if afterMS == 0 {
			break
		}
		ticks = append(ticks, afterMS)
	}
	return ticks, nil
}

// interval ticks at the moments that are phaseMS after a multiple of periodMS since 1970. A late
// tick does not shift the ticks behind it. With a period of 60,000 and a phase of 7,000 it ticks
// 7 s after each full minute.
type interval struct{ periodMS, phaseMS int64 }

// newInterval derives the phase from name, so that schedules of the same period do not all tick
// at the same moment. Another hash would shift the ticks of all schedules.
func newInterval(periodMS int64, name string) interval {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash never fails to write
	return interval{periodMS, int64(h.Sum64() % uint64(periodMS))}
}

func (t interval) next(afterMS int64) int64 {
	since := (afterMS - t.phaseMS) % t.periodMS
	if since < 0 {
		since += t.periodMS
	}
	return afterMS - since + t.periodMS
}

// cronTiming ticks at the whole minutes whose date and time in zone match the
// expression. Where the clock of the zone is set back, a minute that it shows twice ticks twice;
// where it is set forward, the minutes that it leaves out do not tick.
type cronTiming struct {
	spec *cron.SpecSchedule
	zone *time.Location
}

// cronFields are minute, hour, day of the month, month and day of the week.
const cronFields = 5

// newCronTiming parses a cron expression; zone is an IANA name, "" for the default. Error:
// CodeInvalid with the field's path, also for a date that never comes, such as 30 February.
func newCronTiming(expression, zone string) (timing, error) {
	location, err := loadZone(zone)
	if err != nil {
		return nil, err
	}
	if len(expression) > api.MaxCronLength {
		return nil, api.InvalidField("cron", "exceeds "+api.SizeText(api.MaxCronLength))
	}
	if err := checkCron(expression); err != nil {
		return nil, err
	}
	spec, err := cron.ParseStandard(expression)
	if err != nil {
		return nil, api.InvalidField("cron", "cannot be read: "+err.Error())
	}
	t := cronTiming{spec.(*cron.SpecSchedule), location} // @every, which is of another type, was refused
	if t.next(0) == 0 {
		return nil, api.InvalidField("cron", "names a date that no calendar has")
	}
	return t, nil
}

// checkCron refuses what the library accepts beyond its documentation: an empty list, "*-5", a
// zone inside the expression.
func checkCron(expression string) error {
	switch expression {
	case "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly":
		return nil
	}
	fields := strings.Fields(expression)
	if len(fields) != cronFields {
		return api.InvalidField("cron", "must have five fields (minute, hour, day of the month, month, day of the week), or be @hourly, @daily, @weekly, @monthly or @yearly")
	}
	for i, field := range fields {
		for element := range strings.SplitSeq(field, ",") {
			span, step, stepped := strings.Cut(element, "/")
			low, high, ranged := strings.Cut(span, "-")
			star := low == "*" || low == "?"
			if !star && !isCronWord(i, low) || ranged && (star || !isCronWord(i, high)) || stepped && !isNumber(step) {
				return api.InvalidField("cron", fmt.Sprintf("cannot be read: %q in its field %d", element, i+1))
			}
		}
	}
	return nil
}

// cronNames are the names that stand for numbers, by field.
var cronNames = [cronFields][]string{
	3: {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"},
	4: {"sun", "mon", "tue", "wed", "thu", "fri", "sat"},
}

// isCronWord reports whether s is a number, or the name of a month or of a day of the week in
// the field for these. The library checks the range of the number.
func isCronWord(field int, s string) bool {
	return isNumber(s) || slices.Contains(cronNames[field], strings.ToLower(s))
}

// isNumber reports whether s consists of 1 to 3 digits.
func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != "" && len(s) <= 3
}

// loadZone returns a zone by its IANA name; "" is the default. It refuses the names for the
// machine's own zone and for its other files (posix/…, right/…): replicas would differ.
func loadZone(name string) (*time.Location, error) {
	if name == "" {
		name = api.DefaultTimezone
	}
	if len(name) > api.MaxTimezoneLength || name == "Local" || name[0] < 'A' || name[0] > 'Z' {
		return nil, api.InvalidField("timezone", "must be the name of an IANA time zone, such as Europe/Berlin")
	}
	zone, err := time.LoadLocation(name) // refuses paths that lead elsewhere
	if err != nil {
		return nil, api.InvalidField("timezone", fmt.Sprintf("%q is not known: it must be the name of an IANA time zone, such as Europe/Berlin", name))
	}
	return zone, nil
}

// searchYears bounds the search for a tick. The rarest date is a 29 February around 2100,
// eight years after the one before.
const searchYears = 9

// next walks through the zone's clock in steps of a day, an hour or a minute, depending on
// which field does not match yet. No step crosses a change of the clock: after a change by half
// an hour, at midnight, or across a whole day, every minute that the clock shows is looked at,
// twice where the clock shows it twice. The library's own search misses some of these minutes.
func (t cronTiming) next(afterMS int64) int64 {
	at := time.UnixMilli(afterMS).In(t.zone).Truncate(time.Minute).Add(time.Minute)
	for last := at.Year() + searchYears; at.Year() <= last; {
		step := time.Minute
		minutes := time.Duration(at.Minute()) * time.Minute
		switch {
		case !t.onDay(at):
			step = 24*time.Hour - time.Duration(at.Hour())*time.Hour - minutes
		case t.spec.Hour&(1<<at.Hour()) == 0:
			step = time.Hour - minutes
		case t.spec.Minute&(1<<at.Minute()) != 0:
			return at.UnixMilli()
		}
		following := at.Add(step)
		if _, offset := at.Zone(); step > time.Minute {
			// ZoneBounds returns the moment of the change, but is wrong at the end of leap years.
			if _, behind := following.Zone(); behind != offset {
				following = at.Add(time.Minute)
			}
		}
		at = following
	}
	return 0
}

// everyDay is the bit that the library sets in a day field that is "*" or "?".
const everyDay = 1 << 63

// onDay reports whether the day of at matches. Where both day fields are restricted, one of
// them must match.
func (t cronTiming) onDay(at time.Time) bool {
	if t.spec.Month&(1<<at.Month()) == 0 {
		return false
	}
	ofMonth, ofWeek := t.spec.Dom&(1<<at.Day()) != 0, t.spec.Dow&(1<<at.Weekday()) != 0
	if (t.spec.Dom|t.spec.Dow)&everyDay != 0 {
		return ofMonth && ofWeek
	}
	return ofMonth || ofWeek
}
