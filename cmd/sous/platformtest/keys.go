package platformtest

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/codesous/sous/cmd/sous/soustest"
)

// Bootstrap creates the first administrator's key in the store with sous keys bootstrap, and
// returns it.
func Bootstrap(t testing.TB, storeURL string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), soustest.Executable(t), "keys", "bootstrap", "--store", storeURL)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("keys bootstrap: %v\n%s", err, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	key := lines[len(lines)-1]
	if !keyPattern.MatchString(key) {
		t.Fatalf("keys bootstrap printed %q, want a key on the last line", out)
	}
	if err := leak(stderr.String(), key); err != nil {
		t.Errorf("stderr of keys bootstrap: %v", err)
	}
	return key
}

// keyPattern is the form of every API key; its group is the secret part.
var keyPattern = regexp.MustCompile(`sous_[0-9A-Za-z]{26}_([0-9A-Za-z_-]{43})`)

// leak returns an error with the line of a server's output that shows an API key: the text
// of any key, or the secret part of one of keys.
func leak(output string, keys ...string) error {
	secrets := []*regexp.Regexp{keyPattern}
	for _, key := range keys {
		if parts := keyPattern.FindStringSubmatch(key); parts != nil {
			secrets = append(secrets, regexp.MustCompile(regexp.QuoteMeta(parts[1])))
		}
	}
	for line := range strings.Lines(output) {
		for _, secret := range secrets {
			if at := secret.FindStringIndex(line); at != nil {
				return fmt.Errorf("it shows an API key: %s[key]%s", line[:at[0]], line[at[1]:])
			}
		}
	}
	return nil
}
