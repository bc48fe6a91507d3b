package vault

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
)

// What a store does not take delays the end by one try, however much was gathered.
func TestReadBookEndsWithoutAStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &auditLog{
			append: func(ctx context.Context, _ string, _ api.AuditEvent) error {
				<-ctx.Done()
				return ctx.Err()
			},
			nowMS: func() int64 { return 1 }, window: readWindow, logger: zap.NewNop(), life: t.Context(),
			open: map[reading]*api.AuditEvent{}, lost: prometheus.NewCounter(prometheus.CounterOpts{Name: "lost"}),
		}
		for n := range 50 {
			b.note(&reader{tenant: "t", sub: fmt.Sprint(n)}, readOpened, "a", 1, nil)
		}
		began := time.Now()
		b.close(t.Context())
		if took := time.Since(began); took > readTimeout {
			t.Errorf("close: got an end after %s, want it within %s", took, readTimeout)
		}
	})
}
