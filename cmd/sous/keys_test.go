package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/storage/storagetest"
)

// A server without any API key logs how to create the first one.
func TestServeWithoutKeysLogsBootstrapCommand(t *testing.T) {
	t.Parallel()
	executable, store := soustest.Executable(t), storagetest.Redis(t).URL
	says := func(args ...string) bool {
		t.Helper()
		server, err := soustest.Command{Args: append([]string{"serve", "--store", store}, args...)}.Start(executable)
		if err != nil {
			t.Fatalf("Start: %v", err)
		}
		if err := server.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
		return strings.Contains(server.Output(), "sous keys bootstrap --store")
	}
	if !says() {
		t.Error("serve without keys does not log the bootstrap command, want it logged")
	}
	if says("--auth", "off") || says("--roles", "scheduler") {
		t.Error("serve --auth off or --roles scheduler logs the bootstrap command, want no such line")
	}
	if out, err := exec.CommandContext(t.Context(), executable, "keys", "bootstrap", "--store", store, "--tenant", storagetest.Tenant(t)).CombinedOutput(); err != nil {
		t.Fatalf("keys bootstrap: %v\n%s", err, out)
	}
	if says() {
		t.Error("serve with a key logs the bootstrap command, want no such line")
	}
}

// The key that replaces another is printed although the other cannot be revoked: it is stored,
// and its text would be lost.
func TestBootstrapPrintsTheKeyIfARevocationFails(t *testing.T) {
	t.Parallel()
	executable, store := soustest.Executable(t), storagetest.RedisWithout(t, "SREM").URL
	bootstrap := func(args ...string) (stdout, stderr string, err error) {
		cmd := exec.CommandContext(t.Context(), executable, append([]string{"keys", "bootstrap", "--store", store}, args...)...)
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		err = cmd.Run()
		return out.String(), errs.String(), err
	}
	if _, stderr, err := bootstrap(); err != nil {
		t.Fatalf("keys bootstrap: %v\n%s", err, stderr)
	}
	stdout, stderr, err := bootstrap("--replace")
	if err == nil || !strings.HasPrefix(stdout, "sous_") || !strings.Contains(stderr, "warning: the new key is valid") {
		t.Errorf("keys bootstrap --replace: got error %v, stdout %q and stderr %q, want an error, a key and a warning", err, stdout, stderr)
	}
}
