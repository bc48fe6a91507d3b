package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) fnInvokeCommand() *cobra.Command {
	var ref, event, key string
	var logs, async, wait bool
	cmd := &cobra.Command{
		Use:   "invoke NAME",
		Short: "Run a function and print its result",
		Long: `Run a function and print its result.

With --async the server answers once the invocation is durable and runs it later,
again where it fails, as the version's retry says; its activation's id is printed.
With --wait too, its end is waited for.

The exit code is 3 where the function failed; its error then stands on stderr.`,
		Example: `  sous fn invoke hello --event '{"name": "Ada"}'
  sous fn invoke hello --ref 3 --event @event.json --logs
  sous fn invoke hello --async --wait`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			parsed, err := command.ParseRef(ref)
			if err != nil {
				return err
			}
			raw, err := command.ReadJSONArg("event", event, a.Stdin, api.MaxEventBytes)
			if err != nil {
				return err
			}
			t, fn, err := a.functionTarget(args[0])
			if err != nil {
				return err
			}
			options := client.InvokeOptions{Ref: parsed, Event: raw, IdempotencyKey: key}
			switch {
			case wait && !async:
				return errors.New("--wait stands beside --async: without it the end is waited for anyway")
			case async && !wait && logs:
				return errors.New("--logs needs --wait beside --async")
			case async:
				return a.invokeAsync(cmd.Context(), t, fn, args[0], options, wait, logs)
			}
			return a.invoke(cmd.Context(), t, fn, args[0], options, logs)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&ref, "ref", api.DefaultAlias, "alias or version to run")
	flags.StringVar(&event, "event", "", "JSON, @FILE or - for stdin (default null)")
	flags.StringVar(&key, "idempotency-key", "", "run at most once under this key; a repeat prints the first run's result")
	flags.BoolVar(&logs, "logs", false, "print the run's log lines too, on stderr")
	flags.BoolVar(&async, "async", false, "have it run later, with retries")
	flags.BoolVar(&wait, "wait", false, "with --async, wait for its end and print its result")
	return cmd
}

// invoked is what invoke and test print as JSON.
type invoked struct {
	api.InvokeResponse
	Replayed bool          `json:"replayed"`
	Logs     []api.LogLine `json:"logs,omitempty"`
}

// invoke runs fn and prints the outcome; the function's failure is an error.
func (a commands) invoke(ctx context.Context, t *command.Target, fn *client.Function, name string, o client.InvokeOptions, logs bool) error {
	var out invoked
	err := a.Working("running "+name, func() error {
		res, err := fn.Invoke(ctx, o)
		if err != nil {
			return err
		}
		out.InvokeResponse, out.Replayed = res.InvokeResponse, res.Replayed
		if logs {
			out.Logs, _, err = command.Collect(t.Tenant.LogLines(ctx, out.ActivationID), 0)
		}
		return err
	})
	if err != nil {
		return err
	}
	return a.printInvoked(out)
}

func (a commands) printInvoked(out invoked) error {
	for _, line := range out.Logs {
		a.Note("%s", logText(line))
	}
	if err := a.Print(out, resultText(out.InvokeResponse)); err != nil {
		return err
	}
	a.Note("%s", out.summary())
	if out.Status != api.StatusSuccess {
		return &command.FunctionFailure{Status: out.Status, Reason: out.Error}
	}
	return nil
}

func (i invoked) summary() string {
	s := fmt.Sprintf("%s in %d ms, activation %s", i.Status, i.DurationMS, i.ActivationID)
	if i.Replayed {
		s += ", replayed"
	}
	if i.ResultTruncated {
		s += ", result cut"
	}
	return s
}

func resultText(r api.InvokeResponse) string {
	if r.Result == nil {
		return ""
	}
	return command.IndentJSON(r.Result)
}

// logText is a line for people: a message that is a string without its quotes.
func logText(l api.LogLine) string {
	message := string(l.Message)
	var s string
	if json.Unmarshal(l.Message, &s) == nil {
		message = s
	}
	return fmt.Sprintf("%s %-5s %s", command.TimeText(l.TSMS), strings.ToUpper(l.Level), message)
}
