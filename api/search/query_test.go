package search

import (
	"net/url"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
)

// Every field of a query has a parameter, and comes back from it.
func TestQueriesAreParameters(t *testing.T) {
	t.Parallel()
	q := fullQuery()
	v := reflect.ValueOf(q)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("got field %s without a value in this test, want one", v.Type().Field(i).Name)
		}
	}
	got, err := ParseJobs(q.Values())
	if diff := cmp.Diff(q, got); err != nil || diff != "" {
		t.Errorf("got error %v, want none (-want +got):\n%s", err, diff)
	}
}

func TestParametersAreChecked(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"state=done", "state=dead,", "attempts=-1", "attempts=x", "created_from_ms=1.5", "sort=id", "order=up", "count=maybe", "tag.=x", "tag.a=x&tag.a=y", "q=a&q=b", "priority=1",
	} {
		values, err := url.ParseQuery(text)
		if err != nil {
			t.Fatalf("ParseQuery: %v", err)
		}
		if q, err := ParseJobs(values); api.ErrorCode(err) != api.CodeInvalid {
			t.Errorf("%s: got %+v (%v), want CodeInvalid", text, q, err)
		}
	}
}
