package secrets_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/storagetest"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	return string(text)
}

// rewrapAll seals all of a tenant's secrets again, page by page.
func rewrapAll(t *testing.T, s *secrets.Secrets, tenant string) (sum api.RewrapReport, calls int) {
	t.Helper()
	for after, more := "", true; more; more = after != "" {
		report, next, err := s.Rewrap(t.Context(), tenant, after)
		if err != nil {
			t.Fatalf("Rewrap: %v", err)
		}
		sum.Examined += report.Examined
		sum.Rewrapped += report.Rewrapped
		sum.Unreadable += report.Unreadable
		if report.Examined > 200 {
			t.Errorf("Rewrap: got %d secrets examined in one call, want at most 200", report.Examined)
		}
		after = next
		calls++
	}
	return sum, calls
}

// TestRotation walks the way of docs/secrets.md: a new key in front, all sealed again,
// the old key gone. Nothing is restarted, and no value, version or date changes.
func TestRotation(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, store *storage.Store) {
		keys, path := newKeys(t)
		s, tenant := secrets.New(store, keys), storagetest.Tenant(t)
		before := map[string]api.Secret{}
		for i := range 230 { // more than one call examines
			p := secrets.Place{Tenant: tenant, Namespace: fmt.Sprint("ns-", i%3)}
			name := fmt.Sprint("secret", i)
			before[name] = put(t, s, p, name, "the value of "+name)
		}
		old := readFile(t, path)
		if _, err := secrets.Rotate(path, time.Now()); err != nil {
			t.Fatalf("secrets.Rotate: %v", err)
		}
		both := readFile(t, path)
		if !strings.HasSuffix(both, old) || len(both) <= len(old) {
			t.Fatal("the new key does not stand in front")
		}
		sum, calls := rewrapAll(t, s, tenant)
		if sum.Examined != 230 || sum.Rewrapped != 230 || sum.Unreadable != 0 || calls < 2 {
			t.Errorf("Rewrap: got %+v in %d calls, want 230 examined and rewrapped in several calls", sum, calls)
		}
		if again, _ := rewrapAll(t, s, tenant); again.Examined != 230 || again.Rewrapped != 0 {
			t.Errorf("second Rewrap: got %+v, want 230 examined and none rewrapped", again)
		}
		write(t, path, strings.TrimSuffix(both, old))
		fresh := secrets.New(store, openKeys(t, path)) // a replica that never had the old key
		for name, was := range before {
			p := secrets.Place{Tenant: tenant, Namespace: "ns-" + fmt.Sprint(atoi(t, name)%3)}
			if v := reveal(t, fresh, p, name); string(v.Text) != "the value of "+name || v.Version != was.Version {
				t.Errorf("%s: Reveal: got %q at version %d and error %v, want %q at version %d", name, v.Text, v.Version, v.Err, "the value of "+name, was.Version)
			}
			if got, err := fresh.Get(t.Context(), p, name); err != nil || got != was {
				t.Errorf("Get of %s after Rewrap: got %+v and error %v, want %+v", name, got, err, was)
			}
		}
	})
}

func atoi(t *testing.T, name string) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(name, "secret%d", &n); err != nil {
		t.Fatalf("Sscanf: %v", err)
	}
	return n
}

// A server with another key opens nothing, says so, and loses nothing.
func TestAnotherKey(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, store *storage.Store) {
		keys, _ := newKeys(t)
		others, path := newKeys(t)
		p := secrets.Place{Tenant: storagetest.Tenant(t), Namespace: "payments"}
		s, other := secrets.New(store, keys), secrets.New(store, others)
		put(t, s, p, "stripe", "sk_live_1")
		if v := reveal(t, other, p, "stripe"); api.ErrorCode(v.Err) != api.CodeSecretUnreadable || v.Text != nil {
			t.Errorf("Reveal with another key: got %+v, want code %s and no value", v, api.CodeSecretUnreadable)
		}
		if sum, _ := rewrapAll(t, other, p.Tenant); sum.Unreadable != 1 || sum.Rewrapped != 0 {
			t.Errorf("Rewrap with another key: got %+v, want 1 unreadable and none rewrapped", sum)
		}
		if v := reveal(t, s, p, "stripe"); string(v.Text) != "sk_live_1" {
			t.Errorf("Reveal: got %+v, want %q", v, "sk_live_1")
		}
		// A change needs no look at what was.
		put(t, other, p, "stripe", "sk_live_2")
		if v := reveal(t, other, p, "stripe"); string(v.Text) != "sk_live_2" {
			t.Errorf("Reveal: got %+v, want %q", v, "sk_live_2")
		}
		// The key comes: what could not be opened is opened at once.
		put(t, s, p, "stripe", "sk_live_3")
		if v := reveal(t, other, p, "stripe"); v.Err == nil {
			t.Error("opened without the key")
		}
		second := filepath.Join(t.TempDir(), "k")
		if _, err := secrets.Keygen(second, time.Now()); err != nil {
			t.Fatalf("secrets.Keygen: %v", err)
		}
		third := openKeys(t, second)
		write(t, path, readFile(t, path)+readFile(t, second))
		put(t, secrets.New(store, third), p, "stripe", "sk_live_4")
		if v := reveal(t, other, p, "stripe"); string(v.Text) != "sk_live_4" {
			t.Errorf("Reveal: got %+v, want %q", v, "sk_live_4")
		}
	})
}

func TestKeyFilesRefused(t *testing.T) {
	t.Parallel()
	_, good := newKeys(t)
	text := readFile(t, good)
	identity := text[strings.Index(text, "AGE-SECRET-KEY"):]
	for want, content := range map[string]string{
		"no identity": "# nothing here\n\n",
		"line 2":      "# a slip\n" + identity[:40] + other(identity[40]) + identity[41:],
		"line 1":      "hunter2",
		"line 3":      text + "AGE-SECRET-KEY-1", // the third line
		"larger than": "#" + strings.Repeat("x", 200<<10),
	} {
		path := filepath.Join(t.TempDir(), "keys")
		write(t, path, content)
		_, err := secrets.OpenKeyFile(path, zap.NewNop())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), identity[16:30]) {
			t.Errorf("OpenKeyFile: got error %v, want one with %q and without text of the file", err, want)
		}
		if _, err := secrets.Rotate(path, time.Now()); err == nil {
			t.Errorf("Rotate of a key file with the error %q: got success, want an error", want)
		}
	}
	for _, mode := range []os.FileMode{0o644, 0o604, 0o660, 0o601, 0o640, 0o400, 0o600, 0o440} {
		path := filepath.Join(t.TempDir(), "keys")
		write(t, path, text)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatalf("os.Chmod: %v", err)
		}
		_, err := secrets.OpenKeyFile(path, zap.NewNop())
		if open := mode&0o027 != 0; open != (err != nil) || open && !strings.Contains(err.Error(), "0600") {
			t.Errorf("OpenKeyFile of mode %o: got error %v, want one with %q: %v", mode, err, "0600", open)
		}
	}
	if _, err := secrets.OpenKeyFile(filepath.Join(t.TempDir(), "absent"), zap.NewNop()); err == nil {
		t.Error("a file that is not there")
	}
	if _, err := secrets.OpenKeyFile(t.TempDir(), zap.NewNop()); err == nil {
		t.Error("a folder")
	}
	if _, err := secrets.Keygen(good, time.Now()); err == nil || readFile(t, good) != text {
		t.Errorf("Keygen over a key file: got error %v, want one and the file unchanged", err)
	}
	if info, err := os.Stat(good); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v of the key file and error %v, want %v", info.Mode(), err, os.FileMode(0o600))
	}
}

// A file that is broken while the server runs leaves the keys that were, and is
// told of once.
func TestABrokenKeyFileChangesNothing(t *testing.T) {
	t.Parallel()
	store := storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())})
	path := filepath.Join(t.TempDir(), "keys")
	if _, err := secrets.Keygen(path, time.Now()); err != nil {
		t.Fatalf("secrets.Keygen: %v", err)
	}
	core, logs := observer.New(zap.DebugLevel)
	keys, err := secrets.OpenKeyFile(path, zap.New(core))
	if err != nil {
		t.Fatalf("secrets.OpenKeyFile: %v", err)
	}
	s, p := secrets.New(store, keys), secrets.Place{Tenant: storagetest.Tenant(t), Namespace: "payments"}
	put(t, s, p, "a", "alpha")
	good := readFile(t, path)
	write(t, path, "half a li")
	for range 3 { // each looks at the file
		if _, _, err := s.Rewrap(t.Context(), p.Tenant, ""); err != nil {
			t.Fatalf("Rewrap: %v", err)
		}
	}
	if v := reveal(t, s, p, "a"); string(v.Text) != "alpha" {
		t.Errorf("Reveal: got %+v, want %q", v, "alpha")
	}
	if n := logs.FilterMessageSnippet("cannot be used").Len(); n != 1 {
		t.Errorf("got %d log lines about the unusable file, want 1", n)
	}
	write(t, path, good)
	if _, err := secrets.Rotate(path, time.Now()); err != nil {
		t.Fatalf("secrets.Rotate: %v", err)
	}
	if sum, _ := rewrapAll(t, s, p.Tenant); sum.Rewrapped != 1 {
		t.Errorf("Rewrap: got %+v, want 1 rewrapped", sum)
	}
	for _, entry := range logs.All() {
		if text := fmt.Sprint(entry); strings.Contains(text, good[len(good)-40:len(good)-10]) || strings.Contains(text, "alpha") {
			t.Errorf("got log line %s, want none with a key or a value", text)
		}
	}
}

// other is a character that an identity may have, and not c.
func other(c byte) string {
	if c == 'Q' {
		return "P"
	}
	return "Q"
}
