package functions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// tryRequest is a request to the endpoint of a function that fn test runs.
type tryRequest struct {
	method, path string // of the part behind the alias
	header       http.Header
	body         string
}

// answered is the JSON form of the output of fn test --http.
type answered struct {
	Status int           `json:"status"`
	Header http.Header   `json:"headers"`
	Body   string        `json:"body"`
	Logs   []api.LogLine `json:"logs,omitempty"`
}

// parseTryRequest reads --http, such as "POST /orders?dry=1" or "/orders", the values of
// --header and --body, which is text or @FILE.
func parseTryRequest(line string, headers []string, body string) (*tryRequest, error) {
	if line == "" {
		if len(headers) > 0 || body != "" {
			return nil, errors.New("--header and --body need --http")
		}
		return nil, nil //nolint:nilnil // documented by the caller: an event, no request
	}
	r := &tryRequest{method: http.MethodGet, path: line, header: http.Header{}}
	if method, path, ok := strings.Cut(line, " "); ok {
		r.method, r.path = strings.ToUpper(method), strings.TrimSpace(path)
	}
	if !strings.HasPrefix(r.path, "/") {
		return nil, fmt.Errorf("--http %q: want a method and a path, such as \"POST /orders\"", line)
	}
	for _, h := range headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return nil, fmt.Errorf("--header %q: want NAME: VALUE", h)
		}
		r.header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	r.body = body
	if file, ok := strings.CutPrefix(body, "@"); ok {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		r.body = string(raw)
	}
	return r, nil
}

// tryRequest sends r to the function's endpoint, and prints the log on stderr and the answer on
// stdout. A status of 500 and above is a failure of the function.
func (a commands) tryRequest(ctx context.Context, t *command.Target, transport http.RoundTripper, url string, r *tryRequest) error {
	request, err := http.NewRequestWithContext(ctx, r.method, url+r.path, strings.NewReader(r.body))
	if err != nil {
		return err
	}
	request.Header = r.header
	answer, err := transport.RoundTrip(request) // redirects are the function's answer
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("the answer is not complete: %w", err)
	}
	out := answered{Status: answer.StatusCode, Header: answer.Header, Body: string(body)}
	if id := answer.Header.Get("X-Cs-Activation-Id"); id != "" {
		out.Logs, _, err = command.Collect(t.Tenant.LogLines(ctx, id), 0)
		if err != nil {
			return err
		}
	}
	failure := a.requestFailure(ctx, t, answer)
	for _, line := range out.Logs {
		if failure == nil || !command.ShowsError(line, failure.Reason) { // the caller prints the error
			a.Note("%s", a.LogText(line))
		}
	}
	text, printAnswer := out.text(), a.PrintRaw // a file or a program gets the body as it is
	if a.StdoutIsTerminal() {
		text, printAnswer = strings.ReplaceAll(text, "\r\n", "\n"), a.Print
	}
	if err := printAnswer(out, text); err != nil || failure == nil {
		return err
	}
	return failure
}

// requestFailure returns how the activation of an answer failed, nil for an answer below 500. A
// function that answered with such a status itself has no error.
func (a commands) requestFailure(ctx context.Context, t *command.Target, answer *http.Response) *command.FunctionFailure {
	if answer.StatusCode < http.StatusInternalServerError {
		return nil
	}
	failure := &command.FunctionFailure{Status: api.StatusError}
	id := answer.Header.Get("X-Cs-Activation-Id")
	if act, err := t.Tenant.Activation(ctx, id); err == nil && act.Error != nil {
		failure.Status, failure.Reason = act.Status, act.Error
	}
	return failure
}

// text returns the answer as curl -i prints one: status, headers and body.
func (a answered) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP %d %s\n", a.Status, http.StatusText(a.Status))
	for _, name := range slices.Sorted(maps.Keys(a.Header)) {
		for _, value := range a.Header[name] {
			fmt.Fprintf(&b, "%s: %s\n", name, command.Printable(value))
		}
	}
	b.WriteByte('\n')
	if !utf8.ValidString(a.Body) {
		fmt.Fprintf(&b, "(%s that are no text)\n", command.SizeText(int64(len(a.Body))))
		return b.String()
	}
	b.WriteString(a.Body)
	if !strings.HasSuffix(a.Body, "\n") {
		b.WriteByte('\n')
	}
	return b.String()
}
