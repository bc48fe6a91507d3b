package rest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/admission"
)

// Requests that meet an outage of the store do not lower the limit of requests in progress, which
// would refuse others for overload when the store is back. Slow requests without one do.
func TestOutagesOfTheStoreAreNoOverload(t *testing.T) {
	t.Parallel()
	outage := api.Errorf(api.CodeStoreUnavailable, "the store does not answer")
	for name, tc := range map[string]struct {
		path    string
		err     error
		lowered bool
	}{
		"outage": {"/direct/x", outage, false}, "overload": {"/direct/x", nil, true},
		"outage, by the router": {"/v1/x", outage, false}, "overload, by the router": {"/v1/x", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var takes time.Duration
				var err error
				s := &Server{
					auth: &access.Authenticator{},
					log:  zap.NewNop(), clock: time.Now, metrics: newServerMetrics(), answerTimeout: answerTimeout,
					budget: admission.NewBudget(admission.MinBudget), limiter: admission.NewLimiter(0),
					direct: Direct{Prefix: "/direct/", Names: func(string) (tenant, namespace, function string) { return "", "", "" }, Serve: func(http.ResponseWriter, *http.Request, string) error {
						time.Sleep(takes)
						return err
					}},
					router: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						time.Sleep(takes)
						if err != nil {
							newProblem(err, "").note(r.Context()) // as a typed endpoint does
						}
					}),
				}
				requests := func() {
					for range 10 {
						var all sync.WaitGroup
						for range 40 {
							all.Go(func() { s.serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, tc.path, nil)) })
						}
						all.Wait()
						time.Sleep(100 * time.Millisecond)
					}
				}
				takes = time.Millisecond
				requests()
				takes, err = time.Second, tc.err
				requests()
				if got := s.limiter.Limit(); (got < admission.DefaultLimit) != tc.lowered {
					t.Errorf("the limit is %d after requests of a second, %d before; want it lowered: %t", got, admission.DefaultLimit, tc.lowered)
				}
			})
		})
	}
}
