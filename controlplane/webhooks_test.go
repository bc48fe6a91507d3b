package controlplane_test

import (
	"net/http"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/webhook"
)

// The ETag of a webhook is its revision. A write with the ETag of an older one is refused and changes
// nothing.
func TestWebhookPreconditions(t *testing.T) {
	t.Parallel()
	store := embedded(t)
	h := startOn(t, store, withSecrets(t, store))
	const settings = `{"url":"https://example.com/hooks","events":["job.*"]}`
	path := h.at("T/webhooks/one")
	h.call(t, "PUT", path, settings, "If-Match", "*").refused(t, 412, api.CodePreconditionFailed)
	made := h.call(t, "PUT", path, settings, "If-None-Match", "*")
	if w := ok[webhook.Webhook](t, made, http.StatusCreated); w.Secret == "" || made.header.Get("ETag") != `"1"` || made.header.Get("Cache-Control") != "no-store" {
		t.Errorf("got ETag %s and Cache-Control %q of a new webhook, want \"1\" and no-store with a secret", made.header.Get("ETag"), made.header.Get("Cache-Control"))
	}
	h.call(t, "PUT", path, settings, "If-None-Match", "*").refused(t, 412, api.CodePreconditionFailed)
	h.call(t, "PUT", path, settings, "If-None-Match", "*", "If-Match", `"1"`).refused(t, 422, api.CodeInvalid)
	changed := h.call(t, "PATCH", path, `{"retry_limit":3}`, "If-Match", `"1"`)
	if w := ok[webhook.Webhook](t, changed, http.StatusOK); w.RetryLimit != 3 || changed.header.Get("ETag") != `"2"` {
		t.Errorf("got %+v with ETag %s, want 3 retries and \"2\"", w, changed.header.Get("ETag"))
	}
	for _, write := range [][3]string{
		{"PUT", path, settings}, {"PATCH", path, `{"retry_limit":4}`}, {"POST", path + ":rotate", ""}, {"DELETE", path, ""},
	} {
		for _, stale := range []string{`"1"`, `"3"`, `W/"2"`, `"x"`} {
			h.call(t, write[0], write[1], write[2], "If-Match", stale).refused(t, 412, api.CodePreconditionFailed)
		}
	}
	read := h.call(t, "GET", path, "")
	if w := ok[webhook.Webhook](t, read, http.StatusOK); w.RetryLimit != 3 || w.Revision != 2 || w.PreviousSecretUntilMS != 0 || read.header.Get("ETag") != `"2"` {
		t.Errorf("got %+v with ETag %s after refused writes, want revision 2", w, read.header.Get("ETag"))
	}
	rotated := h.call(t, "POST", path+":rotate", "", "If-Match", `"2"`)
	if w := ok[webhook.Webhook](t, rotated, http.StatusOK); w.Secret == "" || rotated.header.Get("ETag") != `"3"` {
		t.Errorf("got ETag %s of a rotation, want \"3\" and a secret", rotated.header.Get("ETag"))
	}
	ok[any](t, h.call(t, "DELETE", path, "", "If-Match", `"7", "3"`), http.StatusNoContent)
	h.call(t, "GET", path, "").refused(t, 404, api.CodeWebhookNotFound)
	h.call(t, "DELETE", path, "", "If-Match", "*").refused(t, 412, api.CodePreconditionFailed)
}
