package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

// The exit codes; the root command's help and docs/cli.md explain them.
const (
	ExitOK       = 0
	exitClient   = 1
	exitServer   = 2
	exitFunction = 3
)

// FunctionFailure says that everything worked but the function.
type FunctionFailure struct {
	Status api.Status
	Reason *api.ActivationError
}

func (e *FunctionFailure) Error() string {
	if e.Reason == nil {
		return "the function ended with status " + string(e.Status)
	}
	return fmt.Sprintf("%s: %s", e.Reason.Type, e.Reason.Message)
}

// serverError marks an error as the failure of the server or its store.
type serverError struct{ error }

// Unwrap returns the marked error.
func (e *serverError) Unwrap() error { return e.error }

// ServerFailure marks err as the failure of the server or its store, whatever status or
// code it has: the process then exits with code 2.
func ServerFailure(err error) error { return &serverError{err} }

// ExitCode returns the exit code of a process that ends with err.
func ExitCode(err error) int {
	var (
		failed   *FunctionFailure
		answered *client.ResponseError
		gone     *client.UnreachableError
		theirs   *serverError
	)
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &failed):
		return exitFunction
	case errors.As(err, &gone), errors.As(err, &theirs):
		return exitServer
	case errors.As(err, &answered):
		if answered.Status >= http.StatusInternalServerError {
			return exitServer
		}
		return exitClient
	case api.ErrorCode(err) == api.CodeStoreUnavailable:
		return exitServer
	}
	return exitClient
}

// Interrupted makes the end that an interrupt brings no error: nothing else ends
// such a command.
func Interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// failure is an error as scripts read it.
type failure struct {
	Code      api.Code             `json:"code,omitempty"`
	Message   string               `json:"message"`
	RequestID string               `json:"request_id,omitempty"`
	Errors    []api.FieldError     `json:"errors,omitempty"`
	Function  *api.ActivationError `json:"function,omitempty"`
}

func describe(err error) failure {
	var (
		answered *client.ResponseError
		coded    *api.Error
		failed   *FunctionFailure
		f        = failure{Message: err.Error()}
	)
	if errors.Is(err, context.Canceled) {
		f.Message = "interrupted"
	}
	if errors.As(err, &coded) {
		// What was said around it, such as which flag it was, stays.
		around, _, _ := strings.Cut(err.Error(), coded.Error())
		f = failure{Code: coded.Code, Message: around + coded.Message, Errors: coded.Fields}
		if cause := coded.Unwrap(); cause != nil {
			f.Message += ": " + cause.Error()
		}
	}
	if errors.As(err, &answered) {
		f.RequestID = answered.RequestID
	}
	if errors.As(err, &failed) {
		f.Function = failed.Reason
	}
	return f
}

// Report prints err to stderr: for people, or as {"error": …}. Errors repeat what
// was typed, and people paste keys where ids belong: those are cut.
func (a *App) Report(err error) {
	f := describe(err)
	text := f.text(errors.Is(err, context.Canceled))
	if a.Output == FormatJSON {
		var b strings.Builder
		_ = jsonTo(&b).Encode(map[string]failure{"error": f}) // a failure is JSON, and the builder takes it
		text = b.String()
	}
	// That stderr cannot be written has nowhere to be told.
	_, _ = io.WriteString(a.Stderr, api.WithoutKeys(text))
}

// FunctionErrorText is the text of a function's error, with its stack.
func FunctionErrorText(e *api.ActivationError) string {
	return failure{Message: string(e.Type) + ": " + e.Message, Function: e}.text(false)
}

// text is f in lines: the message, then one line for each place in question.
func (f failure) text(interrupted bool) string {
	if interrupted {
		return "interrupted\n"
	}
	var b strings.Builder
	b.WriteString("error: ")
	if f.Code != "" {
		fmt.Fprintf(&b, "%s: ", f.Code)
	}
	b.WriteString(f.Message)
	if f.RequestID != "" {
		fmt.Fprintf(&b, " (request %s)", f.RequestID)
	}
	b.WriteByte('\n')
	for _, e := range f.Errors {
		fmt.Fprintf(&b, "  %s: %s\n", place(e), e.Message)
	}
	if f.Code == api.CodeAuthnRequired {
		b.WriteString("  give it in SOUS_KEY, or save it: sous profile set NAME --url URL --key-from-env (a profile's key goes to its own URL only)\n")
	}
	if f.Function != nil && f.Function.Stack != "" {
		for line := range strings.Lines(f.Function.Stack) {
			fmt.Fprintf(&b, "  %s\n", strings.TrimSpace(line))
		}
	}
	return b.String()
}

// place is e's path, with line and column in the form that editors open.
func place(e api.FieldError) string {
	switch {
	case e.Line == 0:
		return e.Path
	case e.Column == 0:
		return fmt.Sprintf("%s:%d", e.Path, e.Line)
	}
	return fmt.Sprintf("%s:%d:%d", e.Path, e.Line, e.Column)
}
