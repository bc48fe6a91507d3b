package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

const (
	// progressAfter is the time after which Working shows that a call is still running.
	progressAfter = time.Second
	progressEvery = progressAfter / 8
	barWidth      = 24 // characters

	// eraseLine moves to the start of a terminal's line and erases it.
	eraseLine = "\r\x1b[K"
)

// Working runs f and returns its error. If f takes longer than progressAfter, Working shows
// doing, such as "deploying hello", on one line of stderr: with a bar while a large body is
// sent or received, else with a spinner and the seconds. The line is erased at the end. If
// stderr is no terminal, under --quiet and under --output json it shows nothing. f writes to
// stderr with Note only.
func (a *App) Working(doing string, f func() error) error {
	return a.working(doing, &a.transfer, f)
}

// Counting is Working for total steps. f calls done after each, which returns the number of steps
// that are done, and may be called concurrently. The bar shows that number.
func (a *App) Counting(doing string, total int, f func(done func() int64) error) error {
	counted := &steps{total: int64(total)}
	return a.working(doing, counted, func() error { return f(func() int64 { return counted.done.Add(1) }) })
}

// meter knows how much of the work is done, as text and as a share from 0 to 1. It returns false
// while that is not known.
type meter interface {
	share() (text string, share float64, ok bool)
}

// steps counts steps of a known number.
type steps struct {
	done  atomic.Int64
	total int64
}

// share implements meter.
func (s *steps) share() (text string, share float64, ok bool) {
	done := s.done.Load()
	return fmt.Sprintf("%d of %d", done, s.total), float64(done) / float64(s.total), s.total > 0
}

// working is Working with a meter for the bar.
func (a *App) working(doing string, of meter, f func() error) error {
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
		a.showProgress(out, width, doing, of, done)
	}()
	err = f()
	close(done)
	<-shown // so that it never writes between later lines
	return err
}

// showProgress shows doing on w from progressAfter until done is closed.
func (a *App) showProgress(w io.Writer, width int, doing string, of meter, done <-chan struct{}) {
	start := time.Now()
	select {
	case <-done:
		return
	case <-time.After(progressAfter):
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for frame := 0; ; frame++ {
		a.drawLine(w, progressLine(of, width, doing, time.Since(start), frame))
		select {
		case <-done:
			a.drawLine(w, "")
			return
		case <-tick.C:
		}
	}
}

// drawLine replaces the line of progress; "" erases it.
func (a *App) drawLine(w io.Writer, line string) {
	a.screen.Lock()
	defer a.screen.Unlock()
	a.drawn = line != ""
	_, _ = fmt.Fprint(w, "\r"+line+"\x1b[K") // only a remark
}

var spinner = []string{"|", "/", "-", "\\"}

// progressLine returns the line of a frame, shorter than width so that no terminal wraps it:
//
//	deploying hello  [########                ] 33%  2.1 MiB of 6.3 MiB
//	deploying 5 functions  [#########               ] 40%  2 of 5
//	deploying hello  | 4 s
func progressLine(of meter, width int, doing string, passed time.Duration, frame int) string {
	line := fmt.Sprintf("%s  %s %.0f s", doing, spinner[frame%len(spinner)], passed.Seconds())
	if text, share, ok := of.share(); ok {
		full := int(share * barWidth)
		line = fmt.Sprintf("%s  [%s%s] %2.0f%%  %s", doing, strings.Repeat("#", full), strings.Repeat(" ", barWidth-full), share*100, text)
	}
	return shorten(Printable(line), max(width-1, 1))
}
