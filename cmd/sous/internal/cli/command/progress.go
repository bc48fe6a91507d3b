package command

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// progressAfter is how long something may take before people are told that it
// is still at work.
const progressAfter = time.Second

// Working runs f and shows people what it does, on stderr, when it takes over a
// second: a line that counts on a terminal, else one line.
func (a *App) Working(what string, f func() error) error {
	if a.Output == FormatJSON {
		return f()
	}
	done := make(chan struct{})
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		showProgress(a.Stderr, what, done)
	}()
	err := f()
	close(done)
	<-shown // so that it never writes between later lines
	return err
}

func showProgress(w io.Writer, what string, done <-chan struct{}) {
	start := time.Now()
	select {
	case <-done:
		return
	case <-time.After(progressAfter):
	}
	out, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		_, _ = fmt.Fprintf(w, "%s…\n", what) // only a remark
		return
	}
	tick := time.NewTicker(progressAfter / 4)
	defer tick.Stop()
	for {
		_, _ = fmt.Fprintf(w, "\r%s… %.0f s", what, time.Since(start).Seconds())
		select {
		case <-done:
			_, _ = fmt.Fprint(w, "\r\x1b[K") // erase the line
			return
		case <-tick.C:
		}
	}
}
