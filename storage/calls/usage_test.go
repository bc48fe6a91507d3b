package calls_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/calls"
	"github.com/codesous/sous/storage/storagetest"
)

// TestUsageByDay: what two replicas counted is one sum for each day and function, and a day without
// calls is left out.
func TestUsageByDay(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		tenant := storagetest.Tenant(t)
		const day = 24 * int64(time.Hour/time.Millisecond)
		const today = 20_000
		end := func(c *calls.Counter, function string, status api.Status, endMS int64) {
			c.Ended(&api.Activation{
				Tenant: tenant, Namespace: "default", Function: function, Status: status, EndMS: endMS,
				DurationMS: 2000, CPUMS: 0.4, EgressBytes: 100,
			}, 1000)
		}
		one, two := calls.NewCounter(t.Context(), s, zap.NewNop()), calls.NewCounter(t.Context(), s, zap.NewNop())
		for range 10 {
			end(one, "mail", api.StatusSuccess, today*day)
			end(two, "mail", api.StatusSuccess, today*day+day-1)
		}
		end(two, "mail", api.StatusError, today*day)
		end(two, "other", api.StatusTimeout, (today-2)*day)
		one.Close(t.Context())
		two.Close(t.Context())
		days, functions, err := calls.New(s).Usage(t.Context(), tenant, today-6, today, true)
		if err != nil {
			t.Fatalf("Usage: %v", err)
		}
		first := quota.UsageDay{Day: "2024-10-02", Calls: 1, Errors: 1, CPUSeconds: 0.001, GBSeconds: 2.097, WallSeconds: 2, EgressBytes: 100}
		last := quota.UsageDay{Day: "2024-10-04", Calls: 21, Errors: 1, CPUSeconds: 0.01, GBSeconds: 21 * 2.097, WallSeconds: 42, EgressBytes: 2100}
		near := cmp.Comparer(func(a, b float64) bool { return a-b < 0.003 && b-a < 0.003 })
		if d := cmp.Diff([]quota.UsageDay{first, last}, days, near); d != "" {
			t.Errorf("days: difference (-want +got):\n%s", d)
		}
		want := []quota.FunctionUsage{{Namespace: "default", Function: "other", UsageDay: first}, {Namespace: "default", Function: "mail", UsageDay: last}}
		if d := cmp.Diff(want, functions, near); d != "" {
			t.Errorf("functions: difference (-want +got):\n%s", d)
		}
		if _, _, err := calls.New(s).Usage(t.Context(), tenant, 0, calls.MaxUsageDays, false); api.ErrorCode(err) != api.CodeInvalid {
			t.Errorf("Usage of too many days: got error %v, want %s", err, api.CodeInvalid)
		}
	})
}
