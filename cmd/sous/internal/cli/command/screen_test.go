package command

import (
	"os"
	"testing"
	"time"
)

func TestKeysEndAScreen(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{"q", "Q", "\x03", "\x04", "xyz", ""} {
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatalf("Pipe: %v", err)
		}
		ended := make(chan struct{})
		go endOnKey(in, func() { close(ended) })
		if _, err := out.WriteString("ab" + keys); err != nil {
			t.Fatalf("Write: %v", err)
		}
		if keys == "xyz" || keys == "" { // these do not end it: the end of the input does
			if err := out.Close(); err != nil {
				t.Fatalf("Close: %v", err)
			}
		}
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Errorf("%q: the screen did not end, want an end", keys)
		}
		_, _ = in.Close(), out.Close()
	}
}

func TestScreenTextReplacesEachLine(t *testing.T) {
	t.Parallel()
	const want = "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J"
	if got := screenText("a\nb\n"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
