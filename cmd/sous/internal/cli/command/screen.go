package command

import (
	"context"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// The escape sequences of a screen. The alternate buffer leaves what the terminal showed.
const (
	screenEnter = "\x1b[?1049h\x1b[?25l"
	screenLeave = "\x1b[?25h\x1b[?1049l"
	screenHome  = "\x1b[H"
	lineErase   = "\x1b[K"
	belowErase  = "\x1b[J"
)

// The size of a terminal that does not tell its own.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// Interactive reports whether stdin and stdout are a terminal that can show a Screen.
func (a *App) Interactive() bool {
	in, isFile := a.Stdin.(*os.File)
	out, alsoFile := a.Stdout.(*os.File)
	return isFile && alsoFile && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}

// ShowScreen shows frames on the whole terminal, one every interval, until ctx ends or the
// user presses q or Ctrl-C. frame gets the size of the terminal in characters and returns at
// most that many lines, each at most that wide. ShowScreen returns the error of frame; the end
// by the user is no error. The terminal is restored in any case. It needs Interactive.
//
// The first frame is made before the screen opens, so that its error, such as that of a server
// that does not answer, leaves the terminal as it is.
func (a *App) ShowScreen(ctx context.Context, interval time.Duration, frame func(ctx context.Context, width, height int) (string, error)) error {
	in, out := a.Stdin.(*os.File), a.Stdout.(*os.File)
	sized := func(ctx context.Context) (string, error) {
		width, height, err := term.GetSize(int(out.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			width, height = defaultWidth, defaultHeight
		}
		return frame(ctx, width, height)
	}
	text, err := sized(ctx)
	if err != nil {
		return err
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return err
	}
	_, _ = out.WriteString(screenEnter) // an error shows at the first frame
	defer func() {
		_, _ = out.WriteString(screenLeave)
		_ = term.Restore(int(in.Fd()), before) // nothing is left to try
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for first := true; ; first = false {
		if _, err := out.WriteString(screenText(text)); err != nil {
			return err
		}
		if first {
			go endOnKey(in, cancel)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		text, err = sized(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// screenText returns the sequence that replaces the screen by text without a flicker: each
// line is written over the one before. In raw mode a line feed does not return the carriage.
func screenText(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return screenHome + strings.Join(lines, lineErase+"\r\n") + lineErase + belowErase
}

// The keys that end a screen. In raw mode Ctrl-C is a byte and no signal.
const (
	keyCtrlC = 3
	keyCtrlD = 4
)

// endOnKey calls end when the user presses q, Ctrl-C or Ctrl-D. It returns at the end of the
// process at the latest, since a read of a terminal cannot be interrupted.
func endOnKey(in *os.File, end func()) {
	keys := make([]byte, 16)
	for {
		n, err := in.Read(keys)
		if err != nil {
			end()
			return
		}
		for _, key := range keys[:n] {
			if key == 'q' || key == 'Q' || key == keyCtrlC || key == keyCtrlD {
				end()
				return
			}
		}
	}
}
