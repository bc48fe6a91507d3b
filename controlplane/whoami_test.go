package controlplane_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/whoami"
	"github.com/codesous/sous/controlplane"
)

func TestWhoAmIDescribesTheKey(t *testing.T) {
	t.Parallel()
	clock := newClock()
	k := startKeyed(t, embedded(t), onClock(clock), func(cfg *controlplane.Config) { cfg.Version = "1.2.3" })
	expires := clock.now().UnixMilli() + 60_000
	text, record := k.key(t, api.RoleViewer, inNamespace("side"), until(expires))
	got := ok[whoami.Identity](t, k.as(t, text, "GET", "/v1/whoami", ""), 200)
	want := whoami.Identity{
		Auth: whoami.AuthKeys, KeyID: record.ID, Name: record.Name, Tenant: record.Tenant, Namespace: "side",
		Roles: record.Roles, ExpiresAtMS: expires, ServerVersion: "1.2.3", ServerTimeMS: got.ServerTimeMS,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("WhoAmI (-want +got):\n%s", diff)
	}
	if now := clock.now().UnixMilli(); got.ServerTimeMS > now || got.ServerTimeMS < now-30_000 {
		t.Errorf("got server_time_ms %d, want about %d", got.ServerTimeMS, now)
	}
	k.as(t, "", "GET", "/v1/whoami", "").refused(t, 401, api.CodeAuthnRequired)
	k.as(t, text[:len(text)-1]+"_", "GET", "/v1/whoami", "").refused(t, 401, api.CodeAuthnInvalid)
}

func TestWhoAmIWithoutAuthenticationIsAnAdministrator(t *testing.T) {
	t.Parallel()
	h := start(t)
	got := ok[whoami.Identity](t, h.call(t, "GET", "/v1/whoami", ""), 200)
	if got.Auth != whoami.AuthOff || got.KeyID != "" || got.Tenant != api.AllTenants || !cmp.Equal(got.Roles, []string{api.RoleAdmin}) {
		t.Errorf("got %+v, want auth off, no key, all tenants and the role admin", got)
	}
}
