package command

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// A table that is wider than the terminal is shortened in its widest columns only, and never
// in the first one.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("i", 36)
	header := []string{"JOB", "STATE", "TAGS", "REASON"}
	rows := [][]string{{id, "pending", strings.Repeat("é", 60), strings.Repeat("r", 30)}}
	for _, test := range []struct {
		width, want int // want is the length of the line
	}{{200, 139}, {90, 90}, {10, 69}} {
		table := Table(header, fitWidth(header, rows, test.width))
		line := strings.Split(table, "\n")[1]
		if got := utf8.RuneCountInString(line); got != test.want {
			t.Errorf("width %d: got a line of %d characters, want %d:\n%s", test.width, got, test.want, table)
		}
		if !strings.HasPrefix(line, id+"  pending  é") {
			t.Errorf("width %d: got %q, want whole cells in the columns JOB and STATE", test.width, line)
		}
	}
}

func TestDurationsOmitZeroUnits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Second: "10s", time.Minute: "1m", 90 * time.Second: "1m30s",
		time.Hour: "1h", time.Hour + time.Second: "1h0m1s", 20 * time.Minute: "20m", time.Hour + 10*time.Minute: "1h10m",
	} {
		if got := DurationText(d); got != want {
			t.Errorf("%d ms: got %q, want %q", d.Milliseconds(), got, want)
		}
	}
}
