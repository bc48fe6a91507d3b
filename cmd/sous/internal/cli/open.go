package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// opened is the JSON form of the output of sous open.
type opened struct {
	URL    string `json:"url"`
	Opened bool   `json:"opened"` // in a browser
}

// openCommand returns sous open. It always prints the URL, so that a user without a browser
// has what the browser would show.
func (a commands) openCommand() *cobra.Command {
	var onlyPrint bool
	var refText string
	cmd := &cobra.Command{
		Use:   "open [FUNCTION]",
		Short: "Open the endpoint of a function, or the documentation of the server, in the browser",
		Long: `Open the endpoint of a function, or the documentation of the server, in the browser, and
print its URL. Without a display, and with --print, it only prints the URL.

BROWSER names the program to use; without it, that is xdg-open, or open on macOS.`,
		Example: `  sous open
  sous open hello
  curl "$(sous open hello --print)"`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := command.ParseRef(refText)
			if err != nil {
				return err
			}
			t, err := a.Target()
			if err != nil {
				return err
			}
			url := t.Client.URL() + "/docs"
			if len(args) == 1 {
				url, err = endpointURL(cmd.Context(), t, args[0], ref)
			} else {
				err = t.Client.Ready(cmd.Context())
			}
			if err != nil {
				return err
			}
			out := opened{URL: url}
			if !onlyPrint && hasDisplay(os.Getenv, runtime.GOOS) {
				if err := openBrowser(cmd.Context(), browser(os.Getenv, runtime.GOOS), url); err != nil {
					a.Note("no browser could be opened: %v", err)
				} else {
					out.Opened = true
				}
			}
			return a.Print(out, url+"\n")
		},
	}
	a.RegisterRemote(cmd.Flags())
	cmd.Flags().BoolVar(&onlyPrint, "print", false, "print the URL only")
	cmd.Flags().StringVar(&refText, "ref", api.DefaultAlias, "alias or version of the function")
	return cmd
}

// endpointURL returns the URL of a function under ref. It fails if there is no such function,
// or no such alias.
func endpointURL(ctx context.Context, t *command.Target, name string, ref api.Ref) (string, error) {
	fn, err := t.Function(name)
	if err != nil {
		return "", err
	}
	if ref.Alias != "" {
		_, err = fn.Alias(ctx, ref.Alias)
	} else {
		_, err = fn.Get(ctx)
	}
	return fn.WebURL(ref), err
}

// hasDisplay reports whether a browser that is opened on this machine is seen by the user.
func hasDisplay(getenv func(string) string, system string) bool {
	if getenv("BROWSER") != "" {
		return true
	}
	if system != "linux" {
		return getenv("SSH_CONNECTION") == ""
	}
	return getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != ""
}

// browser returns the program that opens a URL.
func browser(getenv func(string) string, system string) string {
	switch {
	case getenv("BROWSER") != "":
		return getenv("BROWSER")
	case system == "darwin":
		return "open"
	}
	return "xdg-open"
}

// browserStarts is how long openBrowser waits for the failure of a program. One that runs
// longer is taken for a browser that shows the page.
const browserStarts = 3 * time.Second

// openBrowser starts program with url. It fails if program cannot be started or ends with a
// failure within browserStarts. The program outlives this process.
func openBrowser(ctx context.Context, program, url string) error {
	started := exec.Command(program, url) //nolint:noctx // a browser must not end with this command
	if err := started.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- started.Wait() }()
	select {
	case err := <-ended:
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			return errors.New(program + ": " + failed.Error())
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(browserStarts):
		return nil
	}
}
