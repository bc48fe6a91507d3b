package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

const (
	// progressAfter is the time after which Working shows that a call is still running.
	progressAfter = time.Second
	progressEvery = progressAfter / 8
	barWidth      = 24 // characters
)

// Working runs f and returns its error. If f takes longer than progressAfter, Working shows
// doing, such as "deploying hello", on one line of stderr: with a bar while a large body is
// sent or received, else with a spinner and the seconds. The line is erased at the end. If
// stderr is no terminal, under --quiet and under --output json it shows nothing. f must not
// write to stderr.
func (a *App) Working(doing string, f func() error) error {
	out, ok := a.Stderr.(*os.File)
	if !ok || a.Output == FormatJSON || a.Quiet || !term.IsTerminal(int(out.Fd())) {
		return f()
	}
	width, _, err := term.GetSize(int(out.Fd()))
	if err != nil || width <= 0 {
		width = defaultWidth
	}
	done := make(chan struct{})
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		a.showProgress(out, width, doing, done)
	}()
	err = f()
	close(done)
	<-shown // so that it never writes between later lines
	return err
}

// showProgress shows doing on w from progressAfter until done is closed.
func (a *App) showProgress(w io.Writer, width int, doing string, done <-chan struct{}) {
	start := time.Now()
	select {
	case <-done:
		return
	case <-time.After(progressAfter):
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for frame := 0; ; frame++ {
		_, _ = fmt.Fprint(w, "\r"+progressLine(&a.transfer, width, doing, time.Since(start), frame)+"\x1b[K") // only a remark
		select {
		case <-done:
			_, _ = fmt.Fprint(w, "\r\x1b[K") // erase the line
			return
		case <-tick.C:
		}
	}
}

var spinner = []string{"|", "/", "-", "\\"}

// progressLine returns the line of a frame, shorter than width so that no terminal wraps it:
//
//	deploying hello  [########                ] 33%  2.1 MiB of 6.3 MiB
//	deploying hello  | 4 s
func progressLine(t *transfer, width int, doing string, passed time.Duration, frame int) string {
	line := fmt.Sprintf("%s  %s %.0f s", doing, spinner[frame%len(spinner)], passed.Seconds())
	if text, share, ok := t.share(); ok {
		full := int(share * barWidth)
		line = fmt.Sprintf("%s  [%s%s] %2.0f%%  %s", doing, strings.Repeat("#", full), strings.Repeat(" ", barWidth-full), share*100, text)
	}
	return shorten(Printable(line), max(width-1, 1))
}
