package api

import (
	"encoding/json"
	"testing"
	"time"
)

func TestMomentsHaveAFixedNumberOfDigits(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 10, 8, 21, 0, 0, 0, time.FixedZone("", 7200))
	for _, test := range []struct {
		m    Moment
		want string
	}{
		{Moment{at}, `"2026-10-08T19:00:00.000Z"`},
		{Moment{at.Add(1_230 * time.Microsecond)}, `"2026-10-08T19:00:00.001Z"`},
		{NewMoment(1_500), `"1970-01-01T00:00:01.500Z"`},
	} {
		got, err := json.Marshal(test.m)
		if err != nil || string(got) != test.want {
			t.Errorf("got %s %v, want %s", got, err, test.want)
		}
	}
}

// Times that earlier releases stored have any number of digits.
func TestMomentsReadTimesOfEarlierReleases(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		`"2026-10-08T19:00:00Z"`: 1_791_486_000_000, `"2026-10-08T19:00:00.5Z"`: 1_791_486_000_500,
		`"2026-10-08T19:00:00.123456789Z"`: 1_791_486_000_123, `"2026-10-08T19:00:00.001Z"`: 1_791_486_000_001,
	} {
		var i Install
		if err := json.Unmarshal([]byte(`{"install":"a","createdAt":`+text+`}`), &i); err != nil || i.CreatedAt.UnixMilli() != want {
			t.Errorf("%s: got %d %v, want %d", text, i.CreatedAt.UnixMilli(), err, want)
		}
	}
	if raw, err := json.Marshal(Install{Install: "a"}); err != nil || string(raw) != `{"install":"a"}` {
		t.Errorf("an install without a time: got %s %v, want no createdAt", raw, err)
	}
}
