// Package logtext has the texts that the server itself writes into the logs of functions.
package logtext

import (
	"strings"

	"github.com/codesous/sous/api"
)

// maxFailureMessage bounds the message in the line of a failure, in bytes. The record has all
// of it.
const maxFailureMessage = 4 << 10

// Failure returns a failure as its owner reads it: what was thrown with its message, its
// stack with the causes, and its code.
//
//	AppError: cannot read
//	    at handle (function.js:6:51)
//	Caused by: SyntaxError: invalid character 'x'
//	    at handle (function.js:6:20)
//	  code: E_APP
func Failure(failure *api.ActivationError) string {
	message := api.TruncateText(failure.Message, maxFailureMessage)
	var b strings.Builder
	// The stack of an Error begins with its name and message.
	first, _, _ := strings.Cut(failure.Stack, "\n    at ")
	switch {
	case failure.Type != api.ErrException:
		b.WriteString(string(failure.Type) + ": " + message)
	case !strings.HasSuffix(first, failure.Message):
		b.WriteString(message)
	}
	if failure.Stack != "" {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(failure.Stack)
	}
	if failure.Code != "" {
		b.WriteString("\n  code: " + failure.Code)
	}
	return b.String()
}
