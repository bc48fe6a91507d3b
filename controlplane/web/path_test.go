package web

import (
	"testing"

	"github.com/codesous/sous/api"
)

func TestParsePath(t *testing.T) {
	t.Parallel()
	prod, three := api.Ref{Alias: "prod"}, api.Ref{Version: 3}
	for path, want := range map[string]target{
		"/v1/web/t_acme01/default/greet":           {ref: prod, path: "/"},
		"/v1/web/t_acme01/default/greet/":          {ref: prod, path: "/"},
		"/v1/web/t_acme01/default/greet/prod":      {ref: prod, path: "/"},
		"/v1/web/t_acme01/default/greet/prod/":     {ref: prod, path: "/"},
		"/v1/web/t_acme01/default/greet/3/a%20b/":  {ref: three, path: "/a%20b/"},
		"/v1/web/t_acme01/default/greet/beta/prod": {ref: api.Ref{Alias: "beta"}, path: "/prod"},
	} {
		want.tenant, want.namespace, want.function = "t_acme01", "default", "greet"
		if got, err := parsePath(path); err != nil || got != want {
			t.Errorf("parsePath(%s): got %+v, %v, want %+v", path, got, err, want)
		}
	}
	for path, code := range map[string]api.Code{
		"/v1/web/t_acme01/default":           api.CodeRouteNotFound,
		"/v1/web/t_acme01/default/":          api.CodeValidationName,
		"/v1/web/t_acme01/default/greet//x":  api.CodeValidationName,
		"/v1/web/t_acme01/default/greet/A/x": api.CodeValidationName,
	} {
		if _, err := parsePath(path); api.ErrorCode(err) != code {
			t.Errorf("parsePath(%s): got %v, want %s", path, err, code)
		}
	}
}
