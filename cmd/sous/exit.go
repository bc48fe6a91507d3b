package main

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
	exitOK       = 0
	exitClient   = 1
	exitServer   = 2
	exitFunction = 3
)

// functionFailed says that everything worked but the function.
type functionFailed struct {
	status api.Status
	reason *api.ActivationError
}

func (e *functionFailed) Error() string {
	if e.reason == nil {
		return "the function ended with status " + string(e.status)
	}
	return fmt.Sprintf("%s: %s", e.reason.Type, e.reason.Message)
}

// exitCode says whose failure err is.
func exitCode(err error) int {
	var (
		failed   *functionFailed
		answered *client.ResponseError
		gone     *client.UnreachableError
		unready  *notReady
		unfit    *unfitStore
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &failed):
		return exitFunction
	case errors.As(err, &gone), errors.As(err, &unready), errors.As(err, &unfit):
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
		failed   *functionFailed
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
		f.Function = failed.reason
	}
	return f
}

// report prints err to stderr: for people, or as {"error": …}. Errors repeat what
// was typed, and people paste keys where ids belong: those are cut.
func (a *app) report(err error) {
	f := describe(err)
	text := f.text(errors.Is(err, context.Canceled))
	if a.output == formatJSON {
		var b strings.Builder
		_ = jsonTo(&b).Encode(map[string]failure{"error": f}) // a failure is JSON, and the builder takes it
		text = b.String()
	}
	// That stderr cannot be written has nowhere to be told.
	_, _ = io.WriteString(a.stderr, api.WithoutKeys(text))
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
