package controlplane_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/storagetest"
)

func TestKeysAreMadeListedAndRevoked(t *testing.T) {
	t.Parallel()
	now := newClock()
	k := startKeyed(t, embedded(t), onClock(now))
	admin, creator := k.key(t, api.RoleAdmin)
	keys := "/v1/tenants/" + k.tenant + "/keys"
	ends := now.now().Add(time.Hour).UnixMilli()

	a := k.as(t, admin, "POST", keys, `{"name":"ci für alle","roles":["developer","role:billing"],"namespace":"payments","expires_at_ms":`+itoa(ends)+`}`)
	made := ok[api.NewKey](t, a, http.StatusCreated)
	k.secret(made.Secret)
	want := api.Key{
		ID: made.ID, Tenant: k.tenant, Name: "ci für alle", Roles: []string{"developer", "role:billing"}, Namespace: "payments",
		CreatedAtMS: now.now().UnixMilli(), CreatedBy: creator.ID, ExpiresAtMS: ends,
	}
	if diff := cmp.Diff(want, made.Key); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control %q, want Cache-Control \"no-store\"", a.header.Get("Cache-Control"))
	}
	if !api.LooksLikeKey(made.Secret) || "key_"+made.Secret[5:31] != made.ID {
		t.Errorf("got key %q with the id %s, want the text of a key that contains the ULID of the id", made.Secret, made.ID)
	}
	plain := ok[api.NewKey](t, k.as(t, admin, "POST", keys, `{"name":"x","roles":["viewer"]}`), http.StatusCreated)
	k.secret(plain.Secret)

	// It works, as far as it goes, and is shown no more.
	ok[any](t, k.as(t, made.Secret, "GET", "/v1/limits", ""), 200)
	k.as(t, made.Secret, "GET", keys, "").refused(t, 403, api.CodeAuthzDenied)
	one := k.as(t, admin, "GET", keys+"/"+made.ID, "")
	k.holdsNone(t, "a key's record", string(one.body))
	if diff := cmp.Diff(want, ok[api.Key](t, one, 200)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var listed []string
	for cursor := ""; ; {
		a := k.as(t, admin, "GET", keys+"?limit=1"+cursor, "")
		k.holdsNone(t, "a list", string(a.body))
		for _, digest := range []string{made.Secret, plain.Secret, admin} {
			if strings.Contains(string(a.body), api.KeyDigest(digest)) {
				t.Errorf("list: got a digest in %s, want none", a.body)
			}
		}
		p := ok[api.Page[api.Key]](t, a, 200)
		for _, item := range p.Items {
			listed = append(listed, item.ID)
		}
		if p.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *p.NextCursor
	}
	all := []string{creator.ID, made.ID, plain.ID}
	slices.Sort(all)
	if diff := cmp.Diff(all, listed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	ok[any](t, k.as(t, admin, "DELETE", keys+"/"+made.ID, ""), http.StatusNoContent)
	k.as(t, made.Secret, "GET", "/v1/limits", "").refused(t, 401, api.CodeAuthnInvalid)
	k.as(t, admin, "DELETE", keys+"/"+made.ID, "").refused(t, 404, api.CodeKeyNotFound)
	k.as(t, admin, "GET", keys+"/"+made.ID, "").refused(t, 404, api.CodeKeyNotFound)
	ok[any](t, k.as(t, plain.Secret, "GET", "/v1/limits", ""), 200)

	// An administrator may revoke even the key that asks.
	ok[any](t, k.as(t, admin, "DELETE", keys+"/"+creator.ID, ""), http.StatusNoContent)
	k.as(t, admin, "GET", "/v1/limits", "").refused(t, 401, api.CodeAuthnInvalid)
}

// The platform's administrator makes keys of tenants; a tenant's keys are no one
// else's to see or to end.
// A key in a place where it does not belong is not shown back, nor where it stood.
func TestAKeyThatNamesAFieldIsNotShown(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	admin, _ := k.key(t, api.RoleAdmin)
	a := k.as(t, admin, "POST", "/v1/tenants/"+k.tenant+"/keys", `{"name":"x","roles":["viewer"],"`+admin+`":1}`)
	a.refused(t, 422, api.CodeInvalid)
	k.holdsNone(t, "a problem", string(a.body))
}

func TestKeysBelongToTheirTenant(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	platform, _ := k.key(t, api.RoleAdmin, ofTenant(api.AllTenants))
	one, two := storagetest.Tenant(t), storagetest.Tenant(t)
	made := map[string]api.NewKey{}
	for _, tenant := range []string{one, two} {
		made[tenant] = ok[api.NewKey](t, k.as(t, platform, "POST", "/v1/tenants/"+tenant+"/keys", `{"name":"first","roles":["admin"]}`), 201)
		k.secret(made[tenant].Secret)
		if made[tenant].Tenant != tenant {
			t.Errorf("got key %+v, want one of the tenant %s", made[tenant], tenant)
		}
	}
	theirs := "/v1/tenants/" + two + "/keys/" + made[two].ID
	k.as(t, made[one].Secret, "GET", theirs, "").refused(t, 404, api.CodeTenantNotFound)
	k.as(t, made[one].Secret, "DELETE", theirs, "").refused(t, 404, api.CodeTenantNotFound)
	mine := "/v1/tenants/" + one + "/keys/" + made[two].ID // another tenant's id under one's own name
	k.as(t, made[one].Secret, "GET", mine, "").refused(t, 404, api.CodeKeyNotFound)
	k.as(t, made[one].Secret, "DELETE", mine, "").refused(t, 404, api.CodeKeyNotFound)
	ok[any](t, k.as(t, made[two].Secret, "GET", "/v1/limits", ""), 200)
	p := ok[api.Page[api.Key]](t, k.as(t, made[one].Secret, "GET", "/v1/tenants/"+one+"/keys", ""), 200)
	if len(p.Items) != 1 || p.Items[0].ID != made[one].ID {
		t.Errorf("listed %+v, want 1 item and id %v of the first item", p.Items, made[one].ID)
	}
}

func TestAKeyOfOneNamespaceSeesThatOneOnly(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	list := "/v1/tenants/" + k.tenant + "/namespaces"
	payments, _ := k.key(t, api.RoleViewer, inNamespace("payments"))
	nowhere, _ := k.key(t, api.RoleViewer, inNamespace("nowhere"))
	k.as(t, payments, "GET", list, "").refused(t, 404, api.CodeTenantNotFound)
	k.publish(t, "payments", "hello", "{}")
	k.publish(t, "others", "hello", "{}")
	whole, _ := k.key(t, api.RoleViewer)
	type namespace struct{ Namespace string }
	for key, want := range map[string][]namespace{
		whole: {{"others"}, {"payments"}}, payments: {{"payments"}}, nowhere: {},
	} {
		p := ok[api.Page[namespace]](t, k.as(t, key, "GET", list, ""), 200)
		if diff := cmp.Diff(want, p.Items); diff != "" || p.NextCursor != nil {
			t.Errorf("(-want +got):\n%s\n%+v", diff, p.NextCursor)
		}
	}
	// A cursor that another caller received continues at the same position.
	first := ok[api.Page[namespace]](t, k.as(t, whole, "GET", list+"?limit=1", ""), 200)
	if p := ok[api.Page[namespace]](t, k.as(t, payments, "GET", list+"?cursor="+*first.NextCursor, ""), 200); len(p.Items) != 1 {
		t.Errorf("cursor of another caller: got namespaces %+v, want the caller's own", p.Items)
	}
	others, _ := k.key(t, api.RoleViewer, inNamespace("others"))
	if p := ok[api.Page[namespace]](t, k.as(t, others, "GET", list+"?cursor="+*first.NextCursor, ""), 200); len(p.Items) != 0 {
		t.Errorf("cursor behind the caller's namespace: got namespaces %+v, want none", p.Items)
	}
}

// A key of another namespace learns nothing of an activation: every route to it answers
// as it does for an activation that does not exist.
func TestActivationsOfOtherNamespacesDoNotExist(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	run := k.run(t, time.Now().UnixMilli()) // in payments
	cancelled := 0
	k.engine.cancel = func(string, string) (*api.Activation, error) { cancelled++; return &run.Activation, nil }
	other, _ := k.key(t, api.RoleAdmin, inNamespace("others"))
	own, _ := k.key(t, api.RoleAdmin, inNamespace("payments"))
	path := "/v1/tenants/" + k.tenant + "/activations/"
	for _, way := range []struct{ method, rest string }{
		{"GET", ""}, {"GET", "/logs"}, {"GET", "/logs?follow=true"}, {"POST", ":cancel"},
	} {
		there := k.as(t, other, way.method, path+run.ActivationID+way.rest, "").refused(t, 404, api.CodeActivationNotFound)
		gone := k.as(t, other, way.method, path+activationID+way.rest, "").refused(t, 404, api.CodeActivationNotFound)
		if got := strings.ReplaceAll(there.Detail, run.ActivationID, activationID); got != gone.Detail {
			t.Errorf("%s %s: got detail %q, want %q, the detail of a missing activation", way.method, way.rest, got, gone.Detail)
		}
	}
	if cancelled != 0 {
		t.Error("it was cancelled all the same")
	}
	ok[any](t, k.as(t, own, "POST", path+run.ActivationID+":cancel", ""), 200)
	ok[any](t, k.as(t, own, "GET", path+run.ActivationID+"/logs", ""), 200)
	if cancelled != 1 {
		t.Error("its own is not cancelled")
	}
}
