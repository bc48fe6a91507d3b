package jobs

import (
	"testing"

	"github.com/codesous/sous/api"
	workerv1 "github.com/codesous/sous/api/worker/v1"
)

// Only refusals that the worker can change count towards the end of its stream.
func TestOverloadBlamesNoWorker(t *testing.T) {
	t.Parallel()
	of := func(code api.Code) *workerv1.Error { return &workerv1.Error{Code: string(code)} }
	for name, tc := range map[string]struct {
		res  *workerv1.LifecycleResponse
		want bool
	}{
		"success":               {&workerv1.LifecycleResponse{}, false},
		"a bad frame":           {&workerv1.LifecycleResponse{Error: of(api.CodeInvalid)}, true},
		"a full replica":        {&workerv1.LifecycleResponse{Error: of(api.CodeOverloaded)}, false},
		"no store":              {&workerv1.LifecycleResponse{Fetched: &workerv1.Fetched{Error: of(api.CodeStoreUnavailable)}}, false},
		"a fault of the server": {&workerv1.LifecycleResponse{Fetched: &workerv1.Fetched{Error: of(api.CodeInternal)}}, false},
		"a bad part beside an overloaded one": {&workerv1.LifecycleResponse{
			Fetched: &workerv1.Fetched{Error: of(api.CodeOverloaded)}, Enqueued: []*workerv1.Enqueued{{}, {Error: of(api.CodeAuthzDenied)}},
		}, true},
	} {
		if got := blames(tc.res); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
