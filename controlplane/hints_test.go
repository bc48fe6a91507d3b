package controlplane_test

import (
	"context"
	"testing"

	"github.com/codesous/sous/api"
)

func TestPathWithoutAliasGetsAHint(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.engine.invoke = func(_ context.Context, inv api.Invocation) (*api.Outcome, error) {
		if inv.Ref.Version != 0 {
			return nil, api.Errorf(api.CodeVersionNotFound, "version %d does not exist", inv.Ref.Version)
		}
		return nil, api.Errorf(api.CodeAliasNotFound, "alias %q does not exist", inv.Ref.Alias)
	}
	base := "/v1/web/" + h.tenant + "/payments/hello/"
	for path, want := range map[string]string{
		"orders":       `alias "orders" does not exist; a path of the function follows the alias: ` + base + "prod/orders",
		"orders/7?a=b": `alias "orders" does not exist; a path of the function follows the alias: ` + base + "prod/orders/7",
		"7":            `version 7 does not exist; a path of the function follows the alias: ` + base + "prod/7",
		"Orders":       `alias "Orders" must have 1 to 32 characters: a to z, 0 to 9, _ and -, and begin with a letter; a path of the function follows the alias: ` + base + "prod/Orders",
		"":             `alias "prod" does not exist`,
		"prod/":        `alias "prod" does not exist`,
	} {
		status, code := 404, api.CodeAliasNotFound
		switch path {
		case "7":
			code = api.CodeVersionNotFound
		case "Orders":
			status, code = 400, api.CodeValidationName
		}
		if p := h.call(t, "GET", base+path, "").refused(t, status, code); p.Detail != want {
			t.Errorf("%s: got %q, want %q", path, p.Detail, want)
		}
	}
}

func TestMisspeltQueryParameterGetsASuggestion(t *testing.T) {
	t.Parallel()
	h := start(t)
	for query, want := range map[string]string{
		"?statee=dead": "statee: unknown query parameter; did you mean state?",
		"?tags=a":      "tags: unknown query parameter; did you mean tag?",
	} {
		if p := h.call(t, "GET", h.at("N/queues/emails/jobs")+query, "").refused(t, 422, api.CodeInvalid); p.Detail != want {
			t.Errorf("%s: got %q, want %q", query, p.Detail, want)
		}
	}
}
