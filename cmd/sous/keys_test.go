package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/storage/storagetest"
)

// A server that nobody can call says how to go on, as long as that is so.
func TestServeWithoutKeysSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	executable, store := soustest.Executable(t), storagetest.Redis(t).URL
	says := func(args ...string) bool {
		t.Helper()
		server, err := soustest.Command{Args: append([]string{"serve", "--store", store}, args...)}.Start(executable)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
		return strings.Contains(server.Output(), "sous keys bootstrap --store")
	}
	if !says() {
		t.Error("it says nothing")
	}
	if says("--auth", "off") || says("--roles", "scheduler") {
		t.Error("it asks for keys that nobody needs")
	}
	if out, err := exec.CommandContext(t.Context(), executable, "keys", "bootstrap", "--store", store, "--tenant", storagetest.Tenant(t)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if says() {
		t.Error("it asks for a key that is there")
	}
}
