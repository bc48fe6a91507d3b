package models_test

import (
	"fmt"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/invoker/models/modelstest"
)

// TestRepeatedTargets: a target that a route names more than once has its retries once.
func TestRepeatedTargets(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := modelstest.New(t, modelstest.Refused(500, "api_error", "oops"))
	d.put("main", at(f, ai.KindOpenAI, 0))
	main := ai.RouteTarget{Provider: "main"}
	d.put("inner", ai.ProviderSettings{Kind: ai.KindRoute, Strategy: ai.StrategyFallback, Targets: []ai.RouteTarget{main, main}})
	inner := ai.RouteTarget{Provider: "inner"}
	d.put("outer", ai.ProviderSettings{Kind: ai.KindRoute, Strategy: ai.StrategyFallback, Targets: []ai.RouteTarget{inner, inner, {Provider: "main", Model: "m1"}}})
	if got := d.ask("outer"); got != string(api.CodeHostAIUnavailable) || len(f.Requests()) != 1 {
		t.Errorf("got %s after %d requests, want %s after 1", got, len(f.Requests()), api.CodeHostAIUnavailable)
	}
}

// TestRequestsOfACall: a call to many targets that all fail ends after 32 requests.
func TestRequestsOfACall(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := modelstest.New(t, modelstest.Refused(500, "api_error", "oops"))
	route := ai.ProviderSettings{Kind: ai.KindRoute, Strategy: ai.StrategyFallback}
	for i := range 3 {
		inner := ai.ProviderSettings{Kind: ai.KindRoute, Strategy: ai.StrategyFallback}
		for k := range 12 {
			name := fmt.Sprintf("p%d-%d", i, k)
			d.put(name, at(f, ai.KindOpenAI, 0))
			inner.Targets = append(inner.Targets, ai.RouteTarget{Provider: name})
		}
		d.put(fmt.Sprint("inner", i), inner)
		route.Targets = append(route.Targets, ai.RouteTarget{Provider: fmt.Sprint("inner", i)})
	}
	d.put("outer", route)
	if got := d.ask("outer"); got != string(api.CodeHostAIUnavailable) || len(f.Requests()) != 32 {
		t.Errorf("got %s after %d requests, want %s after 32", got, len(f.Requests()), api.CodeHostAIUnavailable)
	}
}
