package examples

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/codesous/sous/cadenceworker/cadencetest"
	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
)

func TestCadence(t *testing.T) {
	t.Parallel()
	cadence := cadencetest.Start(t)
	server := soustest.Start(t, "--cadence-addr", cadence.GRPCAddr)
	deploy(t, server, "cadence/charge")
	deploy(t, server, "cadence/pack")
	bind := exec.Command(soustest.Executable(t), "cadence", "worker", "create", "orders", "--url", server.URL,
		"--domain", "orders", "--tasklist", "order-activities", "--activity", "Charge=charge", "--activity", "Pack=pack")
	bind.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir())
	if out, err := bind.CombinedOutput(); err != nil {
		t.Fatalf("bind: %v\n%s", err, out)
	}
	program := sandboxtest.Build(t, "github.com/codesous/sous/examples/cadence")
	// The first order registers the domain that the binding waits for.
	for _, tc := range []struct {
		order, want, problem string
	}{
		{"", `{"charge":{"receipt":"order-A-1/0","attempts":1},"pack":{"packed":2,"resumed_from":0}}`, ""},
		{`{"id": "A-2", "card": "busy", "items": ["cup", "vase"]}`, `{"charge":{"receipt":"order-A-2/0","attempts":3},"pack":{"packed":2,"resumed_from":1}}`, ""},
		{`{"id": "A-3", "card": "declined", "items": ["cup"]}`, "", "CardDeclined: the bank declines the card (activation "},
	} {
		args := []string{"--cadence", cadence.GRPCAddr}
		if tc.order != "" {
			args = append(args, "--order", tc.order)
		}
		var said strings.Builder
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Stderr = &said
		out, err := cmd.Output()
		if got := strings.TrimSpace(string(out)); got != tc.want || (err != nil) != (tc.problem != "") || !strings.Contains(said.String(), tc.problem) {
			t.Errorf("order %s: got error %v\nstdout: %s\nstderr: %s\nwant stdout %q, and %q in stderr", tc.order, err, got, said.String(), tc.want, tc.problem)
		}
	}
}
