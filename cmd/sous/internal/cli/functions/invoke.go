package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

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

With --async the server answers once the invocation is durable and runs it later. It
repeats a failed run as the retry setting of the version says. The command prints the
id of the activation; with --wait too, it waits for the end and prints the result.

The exit code is 3 if the function failed; its error is printed on stderr.`,
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
				return errors.New("--wait needs --async: without it the command always waits")
			case async && !wait && logs:
				return errors.New("--logs with --async needs --wait")
			case async:
				return a.invokeAsync(cmd.Context(), t, fn, args[0], options, wait, logs)
			}
			return a.invoke(cmd.Context(), t, fn, args[0], options, logs, command.IndentJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&ref, "ref", api.DefaultAlias, "alias or version to run")
	flags.StringVar(&event, "event", "", "JSON, @FILE or - for stdin (default null)")
	flags.StringVar(&key, "idempotency-key", "", "run at most once under this key; a repeated call prints the result of the first run")
	flags.BoolVar(&logs, "logs", false, "print the run's log lines too, on stderr")
	flags.BoolVar(&async, "async", false, "run it later, with retries")
	flags.BoolVar(&wait, "wait", false, "with --async, wait for the end and print the result")
	return cmd
}

// invoked is the JSON form of the output of invoke and test.
type invoked struct {
	api.InvokeResponse
	Replayed bool          `json:"replayed"`       // an earlier run under the same idempotency key
	Logs     []api.LogLine `json:"logs,omitempty"` // with --logs; test always has them

	text func(json.RawMessage) string // of the result
}

// invoke runs fn and prints the outcome, the result as text returns it. The failure of the function is a
// command.FunctionFailure. Any other error is that of a call to the server, and does not tell
// whether the function ran: an idempotency key makes it safe to repeat.
func (a commands) invoke(ctx context.Context, t *command.Target, fn *client.Function, name string, o client.InvokeOptions, logs bool, text func(json.RawMessage) string) error {
	out := invoked{text: text}
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
	if out.Status == api.StatusSuccess && api.ErrorCode(err) == api.CodeActivationNotFound {
		a.Note("no log: the version records only a sample of its successes")
		err = nil
	}
	if err != nil {
		return err
	}
	return a.printInvoked(out)
}

// printInvoked prints the log and the summary on stderr and the result on stdout. A function
// that failed has no result; under --output json its outcome is printed all the same, before
// the error.
func (a commands) printInvoked(out invoked) error {
	shown := out.Logs
	if out.Error != nil && len(shown) > 0 {
		shown = shown[:len(shown)-1] // the last line is the error, which the caller prints
	}
	for _, line := range shown {
		a.Note("%s", a.LogText(line))
	}
	if err := a.Print(out, out.resultText()); err != nil {
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
		s += ", result truncated"
	}
	return s
}

func (i invoked) resultText() string {
	if i.Result == nil {
		return ""
	}
	return i.text(i.Result)
}
