package api_test

import (
	"testing"

	"github.com/codesous/sous/api"
)

func TestNumbersAreWrittenForPeople(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 255: "255 bytes", 1023: "1,023 bytes", 1024: "1 KiB", 1025: "1.1 KiB", 1536: "1.5 KiB",
		2047: "2 KiB", 262144: "256 KiB", 262145: "256.1 KiB", 6291456: "6 MiB", 6291457: "6.1 MiB", 1 << 30: "1 GiB", 1 << 40: "1 TiB",
		1 << 50: "1,024 TiB",
	} {
		if got := api.SizeText(n); got != want {
			t.Errorf("SizeText(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 10000: "10,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := api.CountText(n); got != want {
			t.Errorf("CountText(%d) = %q, want %q", n, got, want)
		}
	}
	for ms, want := range map[int64]string{
		0: "0 ms", 300: "300 ms", 1000: "1 s", 1500: "1.5 s", 59999: "59.999 s", 60000: "1 min", 90000: "1 min 30 s",
		900000: "15 min", 3600000: "1 h", 5400000: "1 h 30 min", 86400000: "1 d", 604800000: "7 d", 90000000: "1 d 1 h",
	} {
		if got := api.DurationText(ms); got != want {
			t.Errorf("DurationText(%d) = %q, want %q", ms, got, want)
		}
	}
}
