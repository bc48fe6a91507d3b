package ai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/ai"
)

// TestPartsOfManyElements: a content of millions of empty parts is refused before it is decoded.
func TestPartsOfManyElements(t *testing.T) {
	t.Parallel()
	m := ai.Message{Role: ai.RoleUser, Content: json.RawMessage("[" + strings.Repeat("{},", 1_000_000) + "{}]")}
	if parts, err := m.Parts(); err == nil {
		t.Errorf("got %d parts, want an error", len(parts))
	}
	m.Content = json.RawMessage(`[{"type":"text","text":"x"}]`)
	if parts, err := m.Parts(); err != nil || len(parts) != 1 {
		t.Errorf("got %d parts, error %v, want 1", len(parts), err)
	}
}

// TestRoutesWithTooManyLeaves: routes to routes do not multiply the targets of a call.
func TestRoutesWithTooManyLeaves(t *testing.T) {
	t.Parallel()
	for repeats, want := range map[int]api.Code{8: "", 9: api.CodeProviderCycle} {
		all := map[string]*ai.Provider{"main": {Name: "main", ProviderSettings: ai.ProviderSettings{Kind: ai.KindOpenAI}}}
		for name, to := range map[string]string{"inner": "main", "outer": "inner"} {
			p := &ai.Provider{Name: name, ProviderSettings: ai.ProviderSettings{Kind: ai.KindRoute}}
			for range 8 {
				p.Targets = append(p.Targets, ai.RouteTarget{Provider: to})
			}
			all[name] = p
		}
		for range repeats - 8 {
			all["outer"].Targets = append(all["outer"].Targets, ai.RouteTarget{Provider: "main"})
		}
		if err := ai.CheckRoutes(all); api.ErrorCode(err) != want {
			t.Errorf("%d targets: got error %v, want code %q", 56+repeats, err, want)
		}
	}
}

// TestNamesOfTheRest: the name of sums for which there is no room is no model and no phase.
func TestNamesOfTheRest(t *testing.T) {
	t.Parallel()
	hello := []ai.Message{{Role: ai.RoleUser, Content: json.RawMessage(`"x"`)}}
	chats := map[string]string{
		"model": (&ai.Chat{Messages: hello, Model: agent.Other}).Check(), "phase": (&ai.Chat{Messages: hello, Phase: agent.Other}).Check(),
	}
	for field, got := range chats {
		if !strings.HasPrefix(got, field+" must be") {
			t.Errorf("%s %s: got the fault %q, want one", field, agent.Other, got)
		}
	}
}

// TestExtra: extra has no field that the platform sets, in whatever form it is written.
func TestExtra(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]bool{
		"seed": false, "top_k": false, "stream": true, "Stream": true, "\u017ftream": true, "models": true, "service_tier": true,
		"n_predict": true, "max-tokens": true, "max_tokens ": true, "": true,
	} {
		e := ai.Embed{Input: []string{"x"}, Extra: map[string]json.RawMessage{name: json.RawMessage("1")}}
		if got := e.Check(); (got != "") != fault {
			t.Errorf("extra %q: got the fault %q, want one: %v", name, got, fault)
		}
	}
}

// TestSecretsNeedTLS: a key is not sent in clear text to another machine.
func TestSecretsNeedTLS(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://api.example.com/v1": "", "http://127.0.0.1:8080/v1": "", "http://[::1]:8080": "", "http://localhost:11434/v1": "",
		"http://api.example.com/v1": "secret", "http://10.0.0.1/v1": "secret", "http://localhost.example.com": "secret",
	} {
		s := ai.ProviderSettings{Kind: ai.KindOpenAI, BaseURL: url, Secret: "KEY"}
		s.Normalize()
		err := s.Validate()
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one about %q", url, err, want)
		}
		s.Secret = ""
		if err := s.Validate(); err != nil {
			t.Errorf("%s without a secret: got error %v, want none", url, err)
		}
	}
}
