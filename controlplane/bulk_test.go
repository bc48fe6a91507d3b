package controlplane_test

import (
	"slices"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/controlplane"
)

// someBulk is a body that creates an operation.
const someBulk = `{"operation":"cancel","selection":{"queue":["mail"]}}`

// Viewers count the jobs of an operation, list and read operations. They create and cancel none.
func TestBulkRefusesViewers(t *testing.T) {
	t.Parallel()
	_, mirrored := openMirror(t)
	k := startKeyed(t, embedded(t), mirrored)
	viewer, _ := k.key(t, api.RoleViewer)
	operator, _ := k.key(t, api.RoleOperator)
	made := ok[search.Bulk](t, k.as(t, operator, "POST", k.at("T/bulk"), someBulk), 202)
	for _, operation := range search.BulkOperations() {
		body := `{"operation":"` + string(operation) + `","selection":{"queue":["mail"]}}`
		k.as(t, viewer, "POST", k.at("T/bulk"), body).refused(t, 403, api.CodeAuthzDenied)
	}
	k.as(t, viewer, "POST", k.at("T/bulk/"+made.ID+":cancel"), "").refused(t, 403, api.CodeAuthzDenied)
	ok[search.BulkPreview](t, k.as(t, viewer, "POST", k.at("T/bulk:preview"), someBulk), 200)
	got := ok[api.Page[search.Bulk]](t, k.as(t, viewer, "GET", k.at("T/bulk"), ""), 200).Items
	if len(got) != 1 || got[0].ID != made.ID || got[0].State != search.BulkRunning {
		t.Errorf("after refusals: got operations %+v, want only %s, running", got, made.ID)
	}
}

// Every filter and operation that the search does not know is refused, and creates nothing.
func TestBulkRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	_, mirrored := openMirror(t)
	h := start(t, mirrored)
	for body, want := range map[string]struct {
		status int
		code   api.Code
	}{
		`{"operation":"cancel","selection":{"queues":["mail"]}}`:                  {422, api.CodeInvalid},
		`{"operation":"cancel","selection":{"queue":"mail"}}`:                     {422, api.CodeInvalid},
		`{"operation":"cancel","selection":{"state":["odd"]}}`:                    {422, api.CodeInvalid},
		`{"operation":"cancel","selection":{}}`:                                   {422, api.CodeInvalid},
		`{"operation":"cancel"}`:                                                  {422, api.CodeInvalid},
		`{"operation":"pause","selection":{"queue":["mail"]}}`:                    {422, api.CodeInvalid},
		`{"selection":{"queue":["mail"]}}`:                                        {422, api.CodeInvalid},
		`{"operation":"cancel","selection":{"queue":["mail"]},"limit":-1}`:        {422, api.CodeInvalid},
		`{"operation":"cancel","selection":{"queue":["mail"]},"limit":10000001}`:  {422, api.CodeInvalid},
		`{"operation":"cancel","selection":{"queue":["mail"]},"target":"slow"}`:   {422, api.CodeInvalid},
		`{"operation":"move","selection":{"queue":["mail"]}}`:                     {422, api.CodeInvalid},
		`{"operation":"move","selection":{"queue":["mail"]},"target":"fn.hello"}`: {409, api.CodeQueueReserved},
		`{"operation":"move","selection":{"queue":["mail"]},"target":"A B"}`:      {400, api.CodeValidationName},
		`{"operation":"cancel","selection":{"namespace":"A B"}}`:                  {400, api.CodeValidationName},
		`{"operation":"cancel","selection":{"q":"\"open"}}`:                       {400, api.CodeSearchSyntax},
		`{"operation":"cancel","selection":{"queue":["mail"]`:                     {400, api.CodeValidationJSON},
	} {
		for _, path := range []string{"T/bulk", "T/bulk:preview"} {
			t.Log(path, body)
			h.call(t, "POST", h.at(path), body).refused(t, want.status, want.code)
		}
	}
	if got := ok[api.Page[search.Bulk]](t, h.call(t, "GET", h.at("T/bulk"), ""), 200); len(got.Items) != 0 {
		t.Errorf("after refusals: got operations %+v, want none", got.Items)
	}
}

// A replica without a mirror refuses to create operations. It lists, reads and cancels those of others.
func TestBulkWithoutAMirror(t *testing.T) {
	t.Parallel()
	store := embedded(t)
	_, mirrored := openMirror(t)
	h := startOn(t, store, mirrored)
	made := ok[search.Bulk](t, h.call(t, "POST", h.at("T/bulk"), someBulk), 202)

	without := startOn(t, store)
	without.tenant = h.tenant
	for _, path := range []string{"T/bulk", "T/bulk:preview"} {
		without.call(t, "POST", without.at(path), someBulk).refused(t, 503, api.CodeMirrorUnavailable)
	}
	if got := ok[search.Bulk](t, without.call(t, "GET", without.at("T/bulk/"+made.ID), ""), 200); got.State != search.BulkRunning {
		t.Errorf("got state %s, want running", got.State)
	}
	if got := ok[api.Page[search.Bulk]](t, without.call(t, "GET", without.at("T/bulk"), ""), 200); len(got.Items) != 1 {
		t.Errorf("got operations %+v, want one", got.Items)
	}
	for range 2 { // a repeat succeeds
		if got := ok[search.Bulk](t, without.call(t, "POST", without.at("T/bulk/"+made.ID+":cancel"), ""), 200); got.State != search.BulkCancelled {
			t.Errorf("got state %s, want cancelled", got.State)
		}
	}
}

// A repeat under an Idempotency-Key answers with the first operation, and another body is refused.
func TestBulkIsIdempotent(t *testing.T) {
	t.Parallel()
	_, mirrored := openMirror(t)
	h := start(t, mirrored)
	key := []string{"Idempotency-Key", "k1"}
	first := ok[search.Bulk](t, h.call(t, "POST", h.at("T/bulk"), someBulk, key...), 202)
	again := ok[search.Bulk](t, h.call(t, "POST", h.at("T/bulk"), someBulk, key...), 200)
	if again.ID != first.ID || again.CreatedAtMS != first.CreatedAtMS {
		t.Errorf("repeat: got operation %+v, want %+v", again, first)
	}
	h.call(t, "POST", h.at("T/bulk"), `{"operation":"cancel","selection":{"queue":["other"]}}`, key...).refused(t, 422, api.CodeIdempotencyMismatch)
	other := ok[search.Bulk](t, h.call(t, "POST", h.at("T/bulk"), someBulk), 202)
	if other.ID == first.ID {
		t.Errorf("without a key: got operation %s again, want another one", other.ID)
	}
	listed := ok[api.Page[search.Bulk]](t, h.call(t, "GET", h.at("T/bulk"), ""), 200).Items
	if len(listed) != 2 || !slices.ContainsFunc(listed, func(b search.Bulk) bool { return b.ID == first.ID }) {
		t.Errorf("got operations %+v, want %s and %s", listed, first.ID, other.ID)
	}
}

// A tenant has at most as many running operations as the limits say. One that was cancelled makes room.
func TestBulkLimitOfATenant(t *testing.T) {
	t.Parallel()
	_, mirrored := openMirror(t)
	h := start(t, mirrored)
	var last search.Bulk
	limits := ok[controlplane.Limits](t, h.call(t, "GET", "/v1/limits", ""), 200).Bulk
	if want := (controlplane.BulkLimits{Running: 4, ChangedJobs: 10_000_000, Errors: 20, RetentionMS: 604_800_000}); limits != want {
		t.Errorf("got limits %+v, want %+v", limits, want)
	}
	for range limits.Running {
		last = ok[search.Bulk](t, h.call(t, "POST", h.at("T/bulk"), someBulk), 202)
	}
	h.call(t, "POST", h.at("T/bulk"), someBulk).refused(t, 409, api.CodeBulkLimit)
	ok[search.Bulk](t, h.call(t, "POST", h.at("T/bulk/"+last.ID+":cancel"), ""), 200)
	ok[search.Bulk](t, h.call(t, "POST", h.at("T/bulk"), someBulk), 202)
}
