package search

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
)

func TestWordsAreWrittenInQuotes(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		`invoice`:               `"invoice"`,
		`a b`:                   `("a") AND "b"`,
		`a AND b`:               `("a") AND "b"`,
		`a OR b c`:              `("a") OR (("b") AND "c")`,
		`a NOT b`:               `("a") NOT "b"`,
		`"two words"*`:          `"two words"*`,
		`inv*`:                  `"inv"*`,
		`error:refused`:         `error : "refused"`,
		`error:(a OR b)`:        `error : (("a") OR ("b"))`,
		`urn:uuid`:              `"urn:uuid"`,
		`NEAR(a b)`:             `("NEAR") AND (("a") AND "b")`,
		`a-b^c {x} 'y`:          `(("a-b^c") AND "{x}") AND "'y"`,
		`tenant:other`:          `"tenant:other"`,
		"x\ty":                  `("x") AND "y"`,
		`and or not`:            `(("and") AND "or") AND "not"`,
		`日本 café`:               `("日本") AND "café"`,
		`((a))`:                 `(("a"))`,
		`a"b"`:                  `("a") AND "b"`,
		`0f9a1c52-6f5e*`:        `"0f9a1c52-6f5e"*`,
		`payload:"x" NOT id:yy`: `(payload : "x") NOT id : "yy"`,
	} {
		got, err := parseWords(query, jobs.columns)
		if err != nil || got != want {
			t.Errorf("%s: got %s (%v), want %s", query, got, err, want)
		}
	}
}

func TestFaultsOfWordsHavePositions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		query  string
		column int
	}{
		{"", 1}, {"  ", 3}, {"NOT a", 1}, {"a OR", 5}, {"a AND OR b", 7}, {"OR a", 1}, {"(a", 1}, {"a)", 2}, {"()", 2}, {`a "b`, 3}, {"a --", 3}, {"ab*", 1}, {"*", 1},
		{"error:", 7}, {"error: )", 8}, {"error:id:x", 7}, {"a NOT NOT b", 7}, {"é ü \xff", 5}, {"a \x00b", 3}, {"a \ue000tacme01", 3},
		{strings.Repeat("(", 10) + "a" + strings.Repeat(")", 10), 10}, {strings.Repeat("a ", 33), 65}, {strings.Repeat("a", 1025), 1},
	} {
		_, err := parseWords(tt.query, jobs.columns)
		var fault *api.Error
		if !errors.As(err, &fault) || fault.Code != api.CodeSearchSyntax || len(fault.Fields) != 1 {
			t.Errorf("%q: got %v, want CodeSearchSyntax with one field", tt.query, err)
			continue
		}
		if f := fault.Fields[0]; f.Path != "q" || f.Line != 1 || f.Column != tt.column {
			t.Errorf("%q: got %+v, want path q, line 1, column %d", tt.query, f, tt.column)
		}
	}
}

// Every text is either refused with its position or a query that SQLite executes.
func TestNoTextIsSyntaxOfSQLite(t *testing.T) {
	t.Parallel()
	v := openView(t)
	v.addJobs(t, testTenant, []api.Job{{ID: jobID(1), CreatedAtMS: 1, State: api.JobDead, Errors: []api.JobError{{Error: "x"}}}})
	s := New(v, time.Minute)
	parts := rapid.OneOf(
		rapid.SampledFrom([]string{`"`, `'`, `(`, `)`, `*`, `:`, `^`, `-`, `+`, `{`, `}`, `,`, `;`, "--", "/*", " ", "\x00", "\xff", "AND", "OR", "NOT", "NEAR", "error:", "tenant:", "rowid", "abc", "é", "🙂", "ⅷ", "\u0301"}),
		rapid.String())
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(parts, 0, 12).Draw(rt, "parts"), rapid.SampledFrom([]string{"", " "}).Draw(rt, "between"))
		for _, q := range []search.Jobs{
			{Words: text}, {Error: text}, {Queues: []string{text}, Tags: []search.Tag{{Key: text, Value: text}}}, {Worker: text}, {Namespace: text, Batch: text},
		} {
			_, err := s.Jobs(context.Background(), testTenant, &q, "", 1)
			if code := api.ErrorCode(err); err != nil && code != api.CodeSearchSyntax && code != api.CodeInvalid {
				rt.Fatalf("%q: got %v, want a page or a refusal of the text", text, err)
			}
		}
		_, err := s.Jobs(context.Background(), testTenant, &search.Jobs{}, text, 1)
		if code := api.ErrorCode(err); err != nil && code != api.CodeValidationCursor {
			rt.Fatalf("cursor %q: got %v, want a page or CodeValidationCursor", text, err)
		}
	})
}
