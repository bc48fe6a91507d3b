package command

import (
	"slices"
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
		table := Table(fitWidth(header, rows, test.width))
		line := strings.Split(table, "\n")[1]
		if got := utf8.RuneCountInString(line); got != test.want {
			t.Errorf("width %d: got a line of %d characters, want %d:\n%s", test.width, got, test.want, table)
		}
		if !strings.HasPrefix(line, id+"  pending  é") {
			t.Errorf("width %d: got %q, want whole cells in the columns JOB and STATE", test.width, line)
		}
	}
}

// On a terminal of 80 characters a list of activations shows whole times, and ids that other
// commands accept.
func TestNarrowTablesKeepTimesAndIDs(t *testing.T) {
	t.Parallel()
	header := []string{"ACTIVATION", "FUNCTION", "STARTED", "STATUS", "DUE", "TRIGGER", "ERROR"}
	rows := [][]string{
		{"01a218e5-0184-77ce-bb5f-abe0ff8d923a", "boom", "2026-11-26 17:26:31", "error", "-", "schedule", "MyErr: the text of an error"},
		{"01a218e4-ffb1-7c71-ad9d-c1413252ee1d", "hello", "-", "success", "-", "http", ""},
	}
	for width, want := range map[int]string{
		118: "01a218e5-0184-77ce-bb5f-abe0ff8d923a  boom      2026-11-26 17:26:31  error    -    schedule  MyErr: the text of an er…",
		112: "01a218e5-0184-77ce-bb5f-abe0ff8d923a  boom      11-26 17:26:31  error    -    schedule  MyErr: the text of an e…",
		108: "01a218e5-0184-77ce-bb5f-abe0ff8d923a  boom      11-26 17:26:31  error    schedule  MyErr: the text of an er…",
		80:  "ff8d923a    boom      11-26 17:26  error    schedule  MyErr: the text of an err…",
		64:  "ff8d923a    boom      11-26 17:26  error    schedule  MyErr: th…",
	} {
		table := Table(fitWidth(header, rows, width))
		if got := strings.Split(table, "\n")[1]; got != want {
			t.Errorf("width %d: got\n%s, want\n%s", width, got, want)
		}
		if longest := slices.Max(lengths(table)); longest > width {
			t.Errorf("width %d: got a line of %d characters, want none longer than the width:\n%s", width, longest, table)
		}
	}
	if got, _ := fitWidth(header, nil, 20); len(got) != len(header) {
		t.Errorf("without rows: got the columns %v, want %v", got, header)
	}
	if rows[0][0] != "01a218e5-0184-77ce-bb5f-abe0ff8d923a" {
		t.Errorf("the rows of the caller have the id %q, want them unchanged", rows[0][0])
	}
}

// lengths returns the number of characters of each line.
func lengths(text string) []int {
	var out []int
	for line := range strings.Lines(text) {
		out = append(out, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return out
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
