package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/codesous/sous/api/agent"
)

// TestParseUSD: amounts are exact, or none.
func TestParseUSD(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]agent.USD{
		"0": 0, "0.0": 0, "1": 1_000_000, "0.0125": 12_500, "1.25e-2": 12_500, "1E3": 1_000_000_000, "0.000001": 1, "1e-06": 1, "0.1000000000": 100_000,
		"1000000": agent.MaxUSD, "1000000.0": agent.MaxUSD, "00.5": 500_000, "1500000e-6": 1_500_000, "0e30": 0,
		"": -1, "-1": -1, "-0": -1, "+1": -1, "NaN": -1, "Infinity": -1, "0.0000001": -1, "0.30000000000000004": -1, "1e-7": -1, "1000000.000001": -1, "1e7": -1,
		"9999999999999999999999999": -1, "1e30": -1, "1e999999999999": -1, "1e": -1, ".5": -1, "1.": -1, "0x1": -1, "1_0": -1, "1 ": -1, "1,5": -1,
	} {
		got, ok := agent.ParseUSD(text)
		if got != want || ok != (want >= 0) {
			t.Errorf("ParseUSD(%q): got %d, %v, want %d, %v", text, got, ok, want, want >= 0)
		}
		if !ok {
			continue
		}
		if again, ok := agent.ParseUSD(got.String()); !ok || again != got {
			t.Errorf("ParseUSD(%q): got %d, %v, want the same amount", got.String(), again, ok)
		}
	}
}

// TestUSDInJSON: numbers and texts are read, texts are written, and a bad amount is refused by the check
// of its field.
func TestUSDInJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"model":"m","cost_usd":0.0125}`: `{"model":"m","cost_usd":"0.0125"}`, `{"model":"m","cost_usd":"2"}`: `{"model":"m","cost_usd":"2"}`,
		`{"model":"m","cost_usd":1e-5}`: `{"model":"m","cost_usd":"0.00001"}`, `{"model":"m","cost_usd":null}`: `{"model":"m"}`, `{"model":"m","cost_usd":0}`: `{"model":"m","cost_usd":"0"}`,
		`{"model":"m","cost_usd":-1}`: "", `{"model":"m","cost_usd":"NaN"}`: "", `{"model":"m","cost_usd":0.0000001}`: "", `{"model":"m","cost_usd":true}`: "", `{"model":"m","cost_usd":{}}`: "",
	} {
		var u agent.Usage
		if err := json.Unmarshal([]byte(text), &u); err != nil {
			t.Errorf("Unmarshal(%s): got error %v, want none", text, err)
			continue
		}
		path, _ := agent.CheckReport([]agent.Usage{u}, false)
		if (path == "usage[0].cost_usd") != (want == "") {
			t.Errorf("CheckReport(%s): got path %q, want a fault: %v", text, path, want == "")
		}
		if got, err := json.Marshal(u); want != "" && (err != nil || string(got) != want) {
			t.Errorf("Marshal: got %s, error %v, want %s", got, err, want)
		}
	}
}

// TestCost: the cost of tokens is exact, and rounded up at its end only.
func TestCost(t *testing.T) {
	t.Parallel()
	read := agent.USD(25_000)
	p := agent.Price{Model: "m", InputUSD: 250_000, OutputUSD: 2 * agent.Dollar, CacheReadUSD: &read}
	for _, tt := range []struct {
		u    agent.Usage
		want agent.USD
	}{
		{agent.Usage{}, 0},
		{agent.Usage{InputTokens: 1}, 1},
		{agent.Usage{InputTokens: 4}, 1},
		{agent.Usage{InputTokens: 5}, 2},
		{agent.Usage{InputTokens: 1_000_000, OutputTokens: 1_000_000, CacheCreationTokens: 1_000_000, CacheReadTokens: 1_000_000}, 2_525_000},
		{agent.Usage{OutputTokens: agent.MaxTokens}, 2_000 * agent.Dollar},
	} {
		if got := p.Cost(&tt.u); got != tt.want {
			t.Errorf("Cost(%+v): got %s, want %s", tt.u, got, tt.want)
		}
	}
	dear := agent.Price{Model: "m", InputUSD: agent.MaxUSD, OutputUSD: agent.MaxUSD}
	if got := dear.Cost(&agent.Usage{InputTokens: agent.MaxTokens, OutputTokens: agent.MaxTokens}); got != agent.MaxUSD {
		t.Errorf("Cost at the limits: got %s, want %s", got, agent.MaxUSD)
	}
	for field, bad := range map[string]agent.Price{"model": {}, "provider": {Model: "m", Provider: "a b"}, "input_usd": {Model: "m", InputUSD: -1}, "output_usd": {Model: "m", OutputUSD: agent.MaxUSD + 1}} {
		if got, _ := bad.Check(); got != field {
			t.Errorf("Check(%+v): got %q, want %s", bad, got, field)
		}
	}
}
