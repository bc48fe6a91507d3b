package command

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

// The exit codes; the root command's help and docs/cli.md explain them. Scripts can distinguish
// a mistake of their own, an outage, which may pass, and a function that failed.
const (
	ExitOK       = 0
	exitClient   = 1 // the command line or the request is wrong: repeating it does not help
	exitServer   = 2 // no answer, a status of 5xx, or a store that does not answer
	exitFunction = 3 // every call worked, and the run ended without success
)

// FunctionFailure is the error of a run that ended without success, while every call to
// the server worked. The process exits with code 3.
type FunctionFailure struct {
	Status api.Status
	Reason *api.ActivationError // nil where the activation has none
}

// Error implements error.
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
// code it has: the process then exits with code 2. sous health uses it, for which each
// answer but 200 is a failure of the server.
func ServerFailure(err error) error { return &serverError{err} }

// ExitCode returns the exit code of a process that ends with err. The cause may be anywhere
// in the chain of err. An error that is none of those known here, such as one of the flags
// or of a file, is the user's: 1. So is an interrupt.
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

// Interrupted returns nil if ctx has ended, else err. Commands that run until an interrupt
// use it: for them the interrupt is no error.
func Interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// failure is the JSON form of an error.
type failure struct {
	Code      api.Code             `json:"code,omitempty"`
	Message   string               `json:"message"`
	RequestID string               `json:"request_id,omitempty"`
	Errors    []api.FieldError     `json:"errors,omitempty"`
	Function  *api.ActivationError `json:"function,omitempty"`

	hints []string // what to do, for people
}

// describe returns err as a failure. The fields come from the first error in the chain
// that has them. For example
//
//	fmt.Errorf("--ref: %w", &api.Error{Code: "CS_VALIDATION_NAME", Message: "empty"})
//
// becomes the code CS_VALIDATION_NAME and the message "--ref: empty".
func describe(err error) failure {
	var (
		answered *client.ResponseError
		coded    *api.Error
		failed   *FunctionFailure
		wrong    *misspelt
		f        = failure{Message: fileText(err)}
	)
	if errors.Is(err, context.Canceled) {
		f.Message = "interrupted"
	}
	if errors.As(err, &coded) {
		// The text around the coded error stays, such as the name of a flag.
		around, _, _ := strings.Cut(err.Error(), coded.Error())
		f = failure{Code: coded.Code, Message: around + coded.Message, Errors: coded.Fields}
		if cause := coded.Unwrap(); cause != nil {
			f.Message += ": " + cause.Error()
		}
	}
	var gone *client.UnreachableError
	if errors.As(err, &gone) && !errors.Is(err, context.Canceled) {
		f.hints = unreachableHints(gone)
	}
	if errors.As(err, &answered) {
		f.RequestID = answered.RequestID
		f.hints = append(f.hints, answerHints(answered)...)
	}
	if errors.As(err, &failed) {
		f.Function = failed.Reason
	}
	if errors.As(err, &wrong) {
		f.Message += "; did you mean " + wrong.meant + "?"
	}
	return f
}

// fileText returns the text of err, with the cause of a file that could not be used in the words
// of this program: "nofile does not exist", not "open nofile: no such file or directory".
func fileText(err error) string {
	text := err.Error()
	var file *fs.PathError
	if !errors.As(err, &file) {
		return text
	}
	own := file.Path + ": " + file.Err.Error()
	switch {
	case errors.Is(file, fs.ErrNotExist):
		own = file.Path + " does not exist"
	case errors.Is(file, fs.ErrPermission):
		own = "this user may not " + file.Op + " " + file.Path
	case errors.Is(file, syscall.EISDIR):
		own = file.Path + " is a folder, want a file"
	}
	text = strings.Replace(text, file.Error(), own, 1)
	return strings.Replace(text, file.Path+": "+file.Path, file.Path, 1)
}

// Hints returns what to do about an error of a call to a server, nil for an error without a
// known remedy.
func Hints(err error) []string { return describe(err).hints }

// unreachableHints says what to do about a server that does not answer.
func unreachableHints(err *client.UnreachableError) []string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var network net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return []string{"no server listens there: start one with \"sous dev\", or name another one with --url or SOUS_URL"}
	case errors.As(err, &unknown):
		return []string{"the certificate is of an authority that this machine does not know: SSL_CERT_FILE names a file with its certificate"}
	case errors.As(err, &name):
		return []string{"the certificate is for another name: use a name of the certificate in --url or SOUS_URL"}
	case errors.As(err, &invalid):
		return []string{"the certificate is not valid, for example because it has expired: compare the clock of this machine, or replace the certificate (--tls-cert of the server)"}
	case errors.Is(err, http.ErrSchemeMismatch):
		return []string{"the server there speaks plain HTTP: write http:// in --url or SOUS_URL"}
	case strings.Contains(err.Error(), "malformed HTTP response"):
		return []string{"the server there does not speak plain HTTP: write https:// in --url or SOUS_URL if it has a certificate"}
	case errors.As(err, &network) && network.Timeout():
		return []string{"the server did not answer in time: it may be busy, or a firewall may drop the connection; sous health asks it for its state"}
	}
	return []string{"the server is named by --url, SOUS_URL or the profile in use (sous profile list)"}
}

// answerHints says what to do about an answer that sous did not give.
func answerHints(err *client.ResponseError) []string {
	if !err.Foreign {
		return nil
	}
	if err.Status == http.StatusBadRequest && strings.Contains(err.Err.Message, "HTTP request to an HTTPS server") {
		return []string{"the server there expects TLS: write https:// in --url or SOUS_URL"}
	}
	return []string{"this is no answer of sous: another program may listen there, or a proxy answered; --url, SOUS_URL or the profile in use name the server"}
}

// Report prints err to stderr, as text or as {"error": …}. Errors repeat arguments, and
// users sometimes paste an API key in place of an id: keys are removed.
func (a *App) Report(err error) {
	f := describe(err)
	if a.Output != FormatJSON {
		f.nameFlags(a.Flags)
	}
	text := f.text(errors.Is(err, context.Canceled))
	if a.Output == FormatJSON {
		var b strings.Builder
		_ = jsonTo(&b).Encode(map[string]failure{"error": f}) // a failure can be encoded, and a strings.Builder takes every write
		text = b.String()
	}
	// An error of writing to stderr can be reported nowhere.
	_, _ = io.WriteString(a.Stderr, api.WithoutKeys(text))
}

// ErrorText returns err as Report prints it, without a label and a line break at the end.
func ErrorText(err error) string {
	return strings.TrimSuffix(strings.TrimPrefix(describe(err).text(false), errorLabel), "\n")
}

// errorLabel begins the text of an error.
const errorLabel = "error: "

// FunctionErrorText returns the text of a function's error, with its stack.
func FunctionErrorText(e *api.ActivationError) string {
	return failure{Message: string(e.Type) + ": " + e.Message, Function: e}.text(false)
}

// text returns f as lines: the message, then each field or place in the source that is wrong
// and that the message does not name, with the line of source, then the stack of the function:
//
//	error: CS_VALIDATION_SOURCE: function.js:3:11: Unexpected "}" (request req_01M7…)
//	  3 | return 1 }
//	    |          ^
//	  lib.js:1:1: Unexpected "="
//	  1 | = 2;
//	    | ^
func (f failure) text(interrupted bool) string {
	if interrupted {
		return "interrupted\n"
	}
	var b strings.Builder
	b.WriteString(errorLabel)
	if f.Code != "" {
		fmt.Fprintf(&b, "%s: ", f.Code)
	}
	b.WriteString(f.Message)
	if f.RequestID != "" {
		fmt.Fprintf(&b, " (request %s)", f.RequestID)
	}
	b.WriteByte('\n')
	for i, e := range f.Errors {
		if i > 0 || !f.includes(e) {
			b.WriteString("  " + Printable(strings.TrimPrefix(location(e)+": "+e.Message, ": ")) + "\n")
		}
		b.WriteString(excerptText(e))
	}
	for _, hint := range f.hints {
		b.WriteString("  " + hint + "\n")
	}
	if f.Code == api.CodeAuthnRequired {
		b.WriteString("  give it in SOUS_KEY, or save it: sous profile set NAME --url URL --key-from-env (a profile's key goes to its own URL only)\n")
	}
	if f.Code == api.CodeAuthnInvalid {
		b.WriteString("  the key comes from --key, SOUS_KEY or the profile in use (sous profile list); an administrator of this server makes another one: sous keys create NAME --role developer\n")
	}
	if f.Function != nil {
		for line := range strings.Lines(furtherStack(f.Function)) {
			fmt.Fprintf(&b, "  %s\n", strings.TrimSpace(line))
		}
	}
	return PrintableLines(b.String()) // messages and stacks come from servers, functions and files
}

// furtherStack returns the stack of e without the name and the message with which it begins, if
// the message of e says the same. The message may say more: that a rejection had no handler.
func furtherStack(e *api.ActivationError) string {
	const frame = "\n    at "
	first, rest, ok := strings.Cut(e.Stack, frame)
	name, found := strings.CutSuffix(first, e.Message)
	switch {
	case (!found || strings.Contains(name, "\n")) && !strings.HasSuffix(e.Message, first):
		return e.Stack
	case ok:
		return strings.TrimPrefix(frame, "\n") + rest
	}
	return ""
}

// includes reports whether the message of f contains all of e.
func (f failure) includes(e api.FieldError) bool {
	if e.Line > 0 {
		return strings.Contains(f.Message, location(e)+": "+e.Message)
	}
	name := strings.TrimSuffix(strings.TrimPrefix(e.Path, "--"), "s") // the message may name one of several
	return strings.Contains(f.Message, e.Message) && strings.Contains(f.Message, name)
}

// excerptText returns the source line of e and the caret below it, "" if e has none.
func excerptText(e api.FieldError) string {
	source, caret, ok := strings.Cut(e.Excerpt, "\n")
	if !ok {
		return ""
	}
	number := strconv.Itoa(e.Line)
	return fmt.Sprintf("  %s | %s\n  %*s | %s\n", number, Printable(source), len(number), "", caret)
}

// location returns the path of e, with line and column in the form that editors open.
func location(e api.FieldError) string {
	switch {
	case e.Line == 0:
		return e.Path
	case e.Column == 0:
		return fmt.Sprintf("%s:%d", e.Path, e.Line)
	}
	return fmt.Sprintf("%s:%d:%d", e.Path, e.Line, e.Column)
}
