package tasks_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage/quotas/quotastest"
)

// A task that is refused for a quota does not exist, and its announcement does not.
func TestRefusedTasksAreNotStored(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limits quota.TenantLimits
		want   api.Code
	}{
		"jobs":  {quota.TenantLimits{Jobs: 5}, api.CodeTenantQuota},
		"bytes": {quota.TenantLimits{JobBytes: 500_000}, api.CodeTenantRate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, f *fixture) {
				quotastest.Limit(t, f.store, test.limits)
				made := api.NewTask{Payload: json.RawMessage(`"` + strings.Repeat("x", 50_000) + `"`)}
				for i := range 20 {
					id := fmt.Sprint("t", i)
					_, created, err := f.Create(t.Context(), f.tenant, kind, id, made)
					if err == nil && created {
						continue
					}
					if api.ErrorCode(err) != test.want || i == 0 {
						t.Errorf("task %d: created %t, error %v, want code %s after some", i, created, err, test.want)
					}
					if _, err := f.Get(t.Context(), f.tenant, kind, id); api.ErrorCode(err) != api.CodeTaskNotFound {
						t.Errorf("Get of the refused task: got error %v, want %s", err, api.CodeTaskNotFound)
					}
					if got := f.announced(t); len(got) != i {
						t.Errorf("got %d announcements, want the %d of the tasks that exist", len(got), i)
					}
					return
				}
				t.Errorf("20 tasks: got no error, want code %s", test.want)
			})
		})
	}
}

// The events of steps count as bytes, and the end of a task is not refused.
func TestStepsAreLimited(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		quotastest.Limit(t, f.store, quota.TenantLimits{JobBytes: 100_000})
		f.create(t, api.NewTask{ParamsRef: strings.Repeat("x", api.MaxTaskRefBytes)})
		must[*api.Task](t)(f.claim(t, "w1"))
		for step := int64(1); ; step++ {
			_, err := f.step(t, "w1", step)
			if err == nil && step < 1000 {
				continue
			}
			if api.ErrorCode(err) != api.CodeTenantRate || step < 10 {
				t.Errorf("step %d: got error %v, want %s after some", step, err, api.CodeTenantRate)
			}
			break
		}
		if task := must[*api.Task](t)(f.complete(t, "w1", "done")); task.State != api.TaskCompleted {
			t.Errorf("Complete = %+v, want state %s", task, api.TaskCompleted)
		}
	})
}
