package bulk

import (
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
)

// Every built-in role that grants cs:job:steer, which the route needs, grants cs:job:delete too. So
// that a role may grant only the former, the handler needs the latter for deletes.
func TestDeleteNeedsItsOwnAction(t *testing.T) {
	t.Parallel()
	in := &createInput{Body: search.NewBulk{Operation: search.BulkDelete, Selection: search.Selection{Namespace: "payments"}}}
	_, err := New(nil).create(t.Context(), in) // a caller without roles
	if got := api.ErrorCode(err); got != api.CodeAuthzDenied || !strings.Contains(err.Error(), "cs:job:delete") {
		t.Errorf("got error %v, want %s that names cs:job:delete", err, api.CodeAuthzDenied)
	}
}
