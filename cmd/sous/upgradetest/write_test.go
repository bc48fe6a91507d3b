package upgradetest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/storage/storagetest"
)

// The environment variables of TestWriteRecords: the binary of a release, and the folder to
// write (make upgrade-records sets them).
const (
	envBinary = "SOUS_UPGRADE_BINARY"
	envFolder = "SOUS_UPGRADE_FOLDER"
)

// TestWriteRecords plays the story with the binary of a release and keeps what it leaves in
// the store, for TestUpgrade of the next release.
func TestWriteRecords(t *testing.T) {
	binary, folder := os.Getenv(envBinary), os.Getenv(envFolder)
	if binary == "" || folder == "" {
		t.Skipf("%s and %s are not set", envBinary, envFolder)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatalf("os.MkdirAll: %v", err)
	}
	secrets := filepath.Join(folder, "secrets.key")
	output(t, binary, "secret", "keygen", secrets)
	store := storagetest.Redis(t)
	printed := strings.Fields(output(t, binary, "keys", "bootstrap", "--store", store.URL))
	serve := func(roles string, run func(*player)) {
		args := []string{"serve", "--store", store.URL, "--roles", roles, "--secrets-key-file", secrets}
		server, err := soustest.Command{Args: args}.Start(binary)
		if err != nil {
			t.Fatalf("Start: %v", err)
		}
		defer func() {
			if err := server.Stop(); err != nil {
				t.Errorf("Stop: %v", err)
			}
		}()
		run(&player{t: t, url: server.URL, key: printed[len(printed)-1]})
	}
	var made *played
	serve("api,invoker,scheduler", func(p *player) { made = play(p) })
	// A server that stops writes what it has not written yet.
	serve("api", func(p *player) { made.Answers = answers(p, made) })
	text, err := json.MarshalIndent(made, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "answers.json"), append(text, '\n'), 0o600)
	}
	if err != nil {
		t.Fatalf("write the answers: %v", err)
	}
	records, err := os.Create(filepath.Join(folder, "records.resp"))
	if err != nil {
		t.Fatalf("os.Create: %v", err)
	}
	options, err := redis.ParseURL(store.URL)
	if err != nil {
		t.Fatalf("redis.ParseURL: %v", err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	if err := writeRecords(t.Context(), records, client); err != nil {
		t.Fatalf("writeRecords: %v", err)
	}
	if err := records.Close(); err != nil {
		t.Fatalf("records.Close: %v", err)
	}
}

// output returns what a command of binary prints on stdout.
func output(t *testing.T, binary string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, args...).Output()
	if err != nil {
		t.Fatalf("run %s %s: %v", binary, strings.Join(args, " "), err)
	}
	return string(out)
}
