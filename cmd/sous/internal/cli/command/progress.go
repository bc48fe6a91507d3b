package command

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// progressAfter is the time after which Working shows that a call is still running.
const progressAfter = time.Second

// Working runs f and returns its error. If f takes longer than progressAfter, Working prints
// doing, such as "deploying hello", on stderr: with a counter of seconds on a terminal, else
// once. Under --output json it prints nothing. f must not write to stderr.
func (a *App) Working(doing string, f func() error) error {
	if a.Output == FormatJSON {
		return f()
	}
	done := make(chan struct{})
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		showProgress(a.Stderr, doing, done)
	}()
	err := f()
	close(done)
	<-shown // so that it never writes between later lines
	return err
}

// showProgress prints doing on w from progressAfter until done is closed.
func showProgress(w io.Writer, doing string, done <-chan struct{}) {
	start := time.Now()
	select {
	case <-done:
		return
	case <-time.After(progressAfter):
	}
	out, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		_, _ = fmt.Fprintf(w, "%s…\n", doing) // only a remark
		return
	}
	tick := time.NewTicker(progressAfter / 4)
	defer tick.Stop()
	for {
		_, _ = fmt.Fprintf(w, "\r%s… %.0f s", doing, time.Since(start).Seconds())
		select {
		case <-done:
			_, _ = fmt.Fprint(w, "\r\x1b[K") // erase the line
			return
		case <-tick.C:
		}
	}
}
