package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

var errDeclined = errors.New("nothing was done")

// Confirm asks before something is taken away. Without a terminal there is
// nobody to ask: scripts say --yes.
func (a *App) Confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if in, ok := a.Stdin.(*os.File); !ok || !term.IsTerminal(int(in.Fd())) {
		return errors.New("not a terminal: give --yes to confirm")
	}
	return ask(a.Stdin, a.Stderr, question)
}

// ask is nil for an answer that begins with y.
func ask(in io.Reader, out io.Writer, question string) error {
	if _, err := fmt.Fprintf(out, "%s [y/N] ", question); err != nil {
		return err
	}
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y") {
		return nil
	}
	return errDeclined
}

func RegisterYes(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, "do not ask")
}
