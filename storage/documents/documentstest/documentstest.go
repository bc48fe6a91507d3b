// Package documentstest tests that every interface of the document storage, a Face, keeps the
// contract: one table of cases, written from the contract section by section. A test of an
// interface implements Face and calls Run.
//
// documentstest.go runs the cases and compares answers; cases.go and cases_more.go have the
// cases. Most cases are a few operations on keys of their own. Here a put succeeds with
// revision 1, and a repetition with a condition fails:
//
//	{name: "Concurrency & Consistency: ifRevision 0", steps: []step{
//		{op: "put", body: `{"namespace":"n","key":"a","value":1,"ifRevision":0}`, want: `{"revision":1}`},
//		{op: "put", body: `{"namespace":"n","key":"a","value":2,"ifRevision":0}`, code: mismatch},
//	}}
package documentstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/documents"
)

// Face is an interface of the document store under test. Do executes an operation (put,
// get, list, delete, bulkPut, transact) with the request in body. ifRevision is the
// If-Revision-Match of a get, "" for none; a face without headers puts it into the
// request. The answer is a status (StatusOf where the face has none) and a body; the body
// of a failure has code, items and quota, as problems have them.
type Face interface {
	Do(t *testing.T, operation, body, ifRevision string) (status int, answer []byte)
}

// Start makes a face over a Service with the configuration cfg, for a tenant and an
// install of its own.
type Start func(t *testing.T, cfg documents.Config) Face

// statuses is the contract's table of codes, and what it says elsewhere.
var statuses = map[api.Code]int{
	"REVISION_MISMATCH":    http.StatusConflict,
	"QUOTA_EXCEEDED":       http.StatusTooManyRequests,
	"VALIDATION_FAILED":    http.StatusBadRequest,
	"NOT_FOUND":            http.StatusNotFound,
	"UNAUTHORIZED":         http.StatusForbidden,
	"RATE_LIMITED":         http.StatusTooManyRequests,
	"INTERNAL_ERROR":       http.StatusInternalServerError,
	"BULK_PARTIAL_FAILURE": http.StatusConflict,
}

// StatusOf returns the status that the contract has for a code, 0 for an unknown one.
func StatusOf(code api.Code) int { return statuses[code] }

// Namespaces are the namespaces of the cases, for faces that need to know them.
func Namespaces() []string {
	var out []string
	for _, c := range cases() {
		for _, s := range c.steps {
			var named struct{ Namespace string }
			if json.Unmarshal([]byte(s.body), &named) == nil && named.Namespace != "" && api.ValidateDocumentNamespace(named.Namespace) == nil {
				out = append(out, named.Namespace)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// testCase is a few operations in order, with the answer that each must have.
type testCase struct {
	name   string // begins with the section of the contract
	config string // of the service: "" or small
	steps  []step
}

// step is an operation. want is the least that the answer must hold: JSON whose objects may have
// fewer members than the answer's, and whose texts may be <any> for any value but null,
// <absent> for no member, and <time> or <time+60s> for that time by the service's clock, to a
// second. For a failure, want is compared with its code, items and quota.
type step struct {
	op, body   string
	ifRevision string
	code       api.Code // of the failure; "": the operation succeeds
	want       string
	wait       time.Duration // by which the clock advances before the operation
	keep       string        // a member of the answer that later bodies name as $KEPT
	field      string        // that the failure names
}

// clock is the clock of the service under test. It stands still; cases advance it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Run runs all cases on the faces that start makes: one face for the cases with the default
// quota, and one for those with a small one. The cases of a face run one after another and
// share its documents.
func Run(t *testing.T, start Start) {
	t.Helper()
	for _, config := range []string{"", "small"} {
		t.Run(strings.TrimSpace("service "+config), func(t *testing.T) {
			t.Parallel()
			now := &clock{now: time.Now()}
			cfg := documents.Config{Clock: now.Now, Quota: documents.DefaultQuota()}
			if config == "small" {
				cfg.Quota = documents.Quota{NamespaceRecords: 3, NamespaceBytes: 1000, TenantRecords: 5, TenantBytes: 1500}
			}
			face := start(t, cfg)
			for _, c := range cases() {
				if c.config == config {
					t.Run(c.name, func(t *testing.T) { c.run(t, face, now) })
				}
			}
		})
	}
}

func (c *testCase) run(t *testing.T, face Face, now *clock) {
	kept := ""
	for i, s := range c.steps {
		now.advance(s.wait)
		body := strings.ReplaceAll(s.body, "$KEPT", kept)
		status, answer := face.Do(t, s.op, body, s.ifRevision)
		if problems := s.holds(status, answer, now.Now()); len(problems) > 0 {
			t.Errorf("step %d, %s %.300s: got status %d and body %.2000s, want them as in the contract:\n  %s", i+1, s.op, body, status, answer, strings.Join(problems, "\n  "))
		}
		if s.keep != "" {
			var members map[string]string
			_ = json.Unmarshal(answer, &members) // members that are no texts are not kept
			kept = members[s.keep]
		}
	}
}

// holds returns the differences between an answer and what the step wants, nil for none.
func (s *step) holds(status int, answer []byte, now time.Time) []string {
	wanted := StatusOf(s.code)
	if s.code == "" {
		wanted = http.StatusOK
		if s.op == "delete" {
			wanted = http.StatusNoContent
		}
	}
	var problems []string
	if status != wanted {
		problems = append(problems, fmt.Sprintf("the status is not %d", wanted))
	}
	if wanted == http.StatusNoContent {
		if len(bytes.TrimSpace(answer)) > 0 {
			problems = append(problems, "there is a body")
		}
		return problems
	}
	var got any
	if err := json.Unmarshal(answer, &got); err != nil {
		return append(problems, "the answer is not JSON")
	}
	if s.code != "" {
		problems = append(problems, differ("", got, map[string]any{"code": string(s.code)}, now)...)
	}
	if s.field != "" {
		var failure struct{ Errors []api.FieldError }
		if json.Unmarshal(answer, &failure) == nil && len(failure.Errors) > 0 && failure.Errors[0].Path != s.field {
			problems = append(problems, "the first of the errors is not at "+s.field)
		}
	}
	if s.want != "" {
		var want any
		if err := json.Unmarshal([]byte(s.want), &want); err != nil {
			return append(problems, "the case's want is not JSON: "+err.Error())
		}
		problems = append(problems, differ("", got, want, now)...)
	}
	return problems
}

// differ compares the answer got with want, which holds the least that got must have. at is the
// path of the two, such as .items[0].key. It returns the differences as sentences.
func differ(at string, got, want any, now time.Time) []string {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return []string{at + " is not an object"}
		}
		var problems []string
		for name, w := range want {
			g, has := object[name]
			if w == "<absent>" {
				if has {
					problems = append(problems, at+"."+name+" is there")
				}
				continue
			}
			if !has {
				problems = append(problems, at+"."+name+" is missing")
				continue
			}
			problems = append(problems, differ(at+"."+name, g, w, now)...)
		}
		return problems
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return []string{fmt.Sprintf("%s is not a list of %d", at, len(want))}
		}
		var problems []string
		for i := range want {
			problems = append(problems, differ(fmt.Sprintf("%s[%d]", at, i), list[i], want[i], now)...)
		}
		return problems
	case string:
		return differText(at, got, want, now)
	}
	if got != want { // null, numbers, true and false
		return []string{fmt.Sprintf("%s is %v, not %v", at, got, want)}
	}
	return nil
}

// differText is differ for a text in want, which may be one of the patterns of step.
func differText(at string, got any, want string, now time.Time) []string {
	text, isText := got.(string)
	offset, timed := strings.CutPrefix(want, "<time")
	switch {
	case want == "<any>":
		if got == nil {
			return []string{at + " is null"}
		}
	case timed: // <time>, <time+60s>: by the service's clock, to a second
		at := at
		moment, err := time.Parse(time.RFC3339Nano, text)
		in, _ := time.ParseDuration(strings.Trim(offset, "+>"))
		if err != nil || !strings.HasSuffix(text, "Z") || moment.Sub(now.Add(in)).Abs() > time.Second {
			return []string{fmt.Sprintf("%s is %v, not the time in UTC", at, got)}
		}
	case !isText || text != want:
		return []string{fmt.Sprintf("%s is %v, not %q", at, got, want)}
	}
	return nil
}
