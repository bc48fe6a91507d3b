package rest

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
)

// auditMemory is an AuditLog that counts the events of each tenant.
type auditMemory map[string]int

func (m auditMemory) Append(_ context.Context, tenant string, e api.AuditEvent) error {
	m[tenant] += max(1, int(e.Count))
	return nil
}

// A tenant whose keys are refused in very many ways leaves room in the window for the refusals of
// others, alone and counted.
func TestRefusalsOfOneTenantLeaveRoom(t *testing.T) {
	t.Parallel()
	events := auditMemory{}
	l := newRefusalLog(events, zap.NewNop())
	note := func(tenant, sub, action string) {
		t.Helper()
		if err := l.note(t.Context(), tenant, api.AuditEvent{Sub: sub, Action: action}); err != nil {
			t.Fatalf("note: %v", err)
		}
	}
	for n := range 2 * max(maxCallers, maxRefusals) {
		note("t_loud", fmt.Sprint("key ", n), "one")
		note("t_loud", "key 0", fmt.Sprint("action ", n))
	}
	for range 2 * singleRefusals {
		note("t_quiet", "key", "one")
	}
	if got := events["t_quiet"]; got != singleRefusals {
		t.Errorf("%d refusals of a quiet tenant are written alone, want %d", got, singleRefusals)
	}
	l.close()
	if got := events["t_quiet"]; got != 2*singleRefusals {
		t.Errorf("%d refusals of a quiet tenant are written, want all %d", got, 2*singleRefusals)
	}
	if got, most := events["t_loud"], maxTenantCallers+maxTenantRefusals+singleRefusals; got < maxTenantRefusals || got > most {
		t.Errorf("%d refusals of a loud tenant are written, want at most %d", got, most)
	}
}
