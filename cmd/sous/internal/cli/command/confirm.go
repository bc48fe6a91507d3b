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

// errDeclined ends a command whose question was not answered with yes.
var errDeclined = errors.New("nothing was done")

// Confirm asks the user before a command deletes something. It returns nil for the answer
// yes and if yes is set by --yes. Without a terminal it refuses: scripts use --yes. Commands
// call it after they validated their arguments and before they call the server.
func (a *App) Confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if in, ok := a.Stdin.(*os.File); !ok || !term.IsTerminal(int(in.Fd())) {
		return errors.New("not a terminal: give --yes to confirm")
	}
	return ask(a.Stdin, a.Stderr, question)
}

// ask prints question and returns nil for an answer that begins with y or Y, else
// errDeclined. An empty answer and the end of the input are no.
func ask(in io.Reader, out io.Writer, question string) error {
	if _, err := fmt.Fprintf(out, "%s [y/N] ", PrintableLines(question)); err != nil {
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

// RegisterYes adds --yes to a command that calls Confirm.
func RegisterYes(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, "do not ask")
}
