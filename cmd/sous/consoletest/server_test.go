package consoletest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/storage/storagetest"
)

const tenant = "t_console1"

// An installation is a server that asks for keys, with its first key.
type installation struct {
	*soustest.Server
	store string
	admin string
}

// install starts a server over a store of its own.
func install(t *testing.T) *installation {
	t.Helper()
	in := &installation{store: storagetest.Redis(t).URL}
	out, err := exec.CommandContext(t.Context(), executable(t), "keys", "bootstrap", "--store", in.store, "--tenant", tenant).Output()
	if err != nil {
		t.Fatalf("keys bootstrap: %v", err)
	}
	in.admin = lastLine(string(out))
	in.start(t, "")
	t.Cleanup(func() {
		if err := in.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return in
}

// start starts the server, at a free address for "".
func (in *installation) start(t *testing.T, listen string) {
	t.Helper()
	server, err := soustest.Command{Args: []string{"serve", "--store", in.store}, Listen: listen}.Start(executable(t))
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	server.Env = []string{"SOUS_KEY=" + in.admin, "SOUS_TENANT=" + tenant}
	in.Server = server
}

// key makes a key with a role and returns it with its id.
func (in *installation) key(t *testing.T, name, role string) (text, id string) {
	t.Helper()
	text = lastLine(in.Sous(t, "keys", "create", name, "--role", role))
	const ulid = 26
	return text, "key_" + text[len("sous_"):len("sous_")+ulid]
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// deploy publishes a function with a source.
func (in *installation) deploy(t *testing.T, name, source string) {
	t.Helper()
	deploy(t, in.Server, name, source)
}

func deploy(t *testing.T, server *soustest.Server, name, source string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatalf("MkdirAll: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "function.js"), []byte(source), 0o600); err != nil {
		t.Fatalf("WriteFile: %v", err)
	}
	server.Sous(t, "fn", "deploy", dir)
}
