package storage_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/embedded"
	"github.com/codesous/sous/storage/kvstore"
	"github.com/codesous/sous/storage/storagetest"
)

// openIn opens the embedded store in dir; the close function may come early.
func openIn(t *testing.T, dir string) (*fixture, func()) {
	t.Helper()
	e, err := embedded.Open(dir, zaptest.NewLogger(t))
	if err != nil {
		t.Fatalf("embedded.Open: %v", err)
	}
	s, err := storage.Open(t.Context(), storage.Config{Embedded: e})
	if err != nil {
		t.Fatalf("storage.Open: %v", err)
	}
	return newFixture(t, s), func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

func TestEmbeddedKeepsWhatWasWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, done := openIn(t, dir)
	ctx, tn, ns, name := t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name
	id := f.draft(t, "aa")
	if _, _, err := f.publish(id, "aa", "prod"); err != nil {
		t.Fatalf("publish: %v", err)
	}
	a := f.lost()
	f.start(t, a)
	if _, err := f.activations.SweepFunction(ctx, tn, ns, name, f.NowMS(), 10); err != nil { // strings, sets, sorted sets, a hash
		t.Fatalf("activations.SweepFunction: %v", err)
	}
	kv := kvstore.New(f.Store)
	binary := []byte("\x00\xff\n")
	for key, ttl := range map[string]time.Duration{"for ever": 0, "a moment": 300 * time.Millisecond, "an hour": time.Hour} {
		if err := kv.Set(ctx, tn, ns, key, binary, ttl); err != nil {
			t.Fatalf("Set: %v", err)
		}
	}
	done()

	// The clock runs while the store is closed.
	over := time.Now().Add(300 * time.Millisecond)
	storagetest.Eventually(t, func() bool { return time.Now().After(over) })
	g, done := openIn(t, dir)
	defer done()
	g.fn = f.fn
	if latest := checkFunction(t, g); latest != 1 {
		t.Errorf("got latest version %d, want 1", latest)
	}
	if _, err := g.drafts.Get(ctx, tn, ns, name, id); api.ErrorCode(err) != api.CodeDraftConsumed {
		t.Errorf("drafts.Get: got %v; want CodeDraftConsumed", err)
	}
	if got, err := g.activations.Get(ctx, tn, a.ActivationID); err != nil || got.Status != api.StatusError {
		t.Errorf("Get: got %+v and error %v, want status %s", got, err, api.StatusError)
	}
	if c, err := g.activations.SweepFunction(ctx, tn, ns, name, g.NowMS(), 10); err != nil || c.Read != 0 {
		t.Errorf("SweepFunction: got %+v and error %v, want no record read: the cursor was kept", c, err)
	}
	kv = kvstore.New(g.Store)
	for key, want := range map[string]bool{"for ever": true, "a moment": false, "an hour": true} {
		if value, found, err := kv.Get(ctx, tn, ns, key); err != nil || found != want || found && !bytes.Equal(value, binary) {
			t.Errorf("Get of %s: got %q, found %v and error %v, want found %v and the stored bytes", key, value, found, err, want)
		}
	}
}

func TestEmbeddedWritesWhileItRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, done := openIn(t, dir)
	defer done()
	path := filepath.Join(dir, "store.snapshot")
	storagetest.Eventually(t, func() bool {
		raw, err := os.ReadFile(path)
		return err == nil && bytes.Contains(raw, []byte(f.fn.Tenant))
	})
	left, err := filepath.Glob(path + ".*")
	if err != nil || len(left) > 1 {
		t.Errorf("got temporary files %v and error %v, want at most 1", left, err)
	}
}

// TestEmbeddedUnderLoad takes snapshots while many write, as the race detector
// watches.
func TestEmbeddedUnderLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, done := openIn(t, dir)
	defer done()
	stop := time.Now().Add(2500 * time.Millisecond)
	for _, err := range storagetest.Concurrently(16, func(int) error {
		for time.Now().Before(stop) {
			a := f.running()
			if _, _, err := f.activations.Start(t.Context(), a); err != nil {
				return err
			}
			if won, _, err := f.activations.Finish(t.Context(), succeeded(a, f.NowMS(), "1")); err != nil || !won {
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("unexpected error: %v", err)
		}
	}
}

func TestEmbeddedRefusesASecondProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, done := openIn(t, dir)
	if _, err := embedded.Open(dir, zaptest.NewLogger(t)); err == nil || !strings.Contains(err.Error(), "in use by another server") {
		t.Errorf("Open of a directory in use: got error %v, want one with %q", err, "in use by another server")
	}
	done()
	_, done = openIn(t, dir)
	done()
}

func TestEmbeddedRefusesADamagedSnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, done := openIn(t, dir)
	done()
	path := filepath.Join(dir, "store.snapshot")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for name, raw := range map[string][]byte{
		"empty": {}, "cut short": good[:len(good)-20], "a bit flipped": flipped, "something else": []byte(strings.Repeat("x", 100)),
	} {
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
		if _, err := embedded.Open(dir, zaptest.NewLogger(t)); err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%s: Open: got error %v, want one with %q", name, err, "cannot be read")
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, raw) {
			t.Errorf("%s: got file of %d bytes and error %v after Open, want the file unchanged", name, len(after), err)
		}
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	_, done = openIn(t, dir)
	done()
}

// TestEmbeddedTakesLargeValues: requests and replies beyond any buffer.
func TestEmbeddedTakesLargeValues(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())})
	kv, tenant := kvstore.New(s), storagetest.Tenant(t)
	value := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	if err := kv.Set(t.Context(), tenant, "n", "k", value, 0); err != nil {
		t.Fatalf("Set: %v", err)
	}
	got, _, err := kv.Get(t.Context(), tenant, "n", "k")
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	if !bytes.Equal(got, value) {
		t.Errorf("got %d bytes, want the %d bytes that were written", len(got), len(value))
	}
}

// writeUntilKilled writes pairs to the store in dir and says so on the standard
// output after each answer.
func writeUntilKilled(dir string) int {
	e, err := embedded.Open(dir, zap.NewNop())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	s, err := storage.Open(ctx, storage.Config{Embedded: e})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	f := &fixture{Store: s, activations: activations.New(s), fn: killedFunction()}
	for {
		a := f.running()
		_, _, err = f.activations.Start(ctx, a)
		if err == nil {
			_, _, err = f.activations.Finish(ctx, succeeded(a, s.NowMS(), "1")) // a script, so that its text is kept
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(a.ActivationID)
	}
}

func killedFunction() api.Function {
	return api.Function{Tenant: "t_killed", Namespace: "payments", Name: "reconcile"}
}

// TestEmbeddedOutlivesAKill kills a writing process, a few times over, and finds
// everything that was answered.
func TestEmbeddedOutlivesAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var answered []string
	for round := range 3 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), embeddedChild+"="+dir)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatalf("child.StdoutPipe: %v", err)
		}
		if err := child.Start(); err != nil {
			t.Fatalf("child.Start: %v", err)
		}
		enough := time.Now().Add(time.Duration(round+1) * 500 * time.Millisecond) // before, at and after the first snapshot
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			answered = append(answered, lines.Text())
			if time.Now().After(enough) {
				if err := child.Process.Kill(); err != nil {
					t.Fatalf("Process.Kill: %v", err)
				}
			}
		}
		if err := child.Wait(); err == nil || child.ProcessState.ExitCode() != -1 {
			t.Fatalf("child: got its end with error %v, want it killed", err)
		}
	}
	s := storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, dir)})
	activations := activations.New(s)
	for _, id := range answered {
		if a, err := activations.Get(t.Context(), killedFunction().Tenant, id); err != nil || a.Status != api.StatusSuccess {
			t.Fatalf("Get of %s, one of %d answered: got %+v and error %v, want status %s", id, len(answered), a, err, api.StatusSuccess)
		}
	}
	t.Logf("%d activations outlived the kills", len(answered))
}

// TestEmbeddedJournalKnowsItsScripts: a script that was loaded before a snapshot
// is called by its digest alone after it, and its text was in a journal that has
// gone.
func TestEmbeddedJournalKnowsItsScripts(t *testing.T) {
	t.Parallel()
	dir, killed := t.TempDir(), t.TempDir()
	f, done := openIn(t, dir)
	defer done()
	finish := func() *activations.Record {
		a := f.running()
		f.start(t, a)
		if won, _, err := f.activations.Finish(t.Context(), succeeded(a, f.NowMS(), "1")); err != nil || !won {
			t.Fatalf("Finish: got won %v and error %v, want true", won, err)
		}
		return a
	}
	finish()
	storagetest.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "store.journal.1"))
		return os.IsNotExist(err)
	})
	a := finish()
	// What a kill at this moment would leave. A snapshot may be under way: then the
	// files are copied again.
	storagetest.Eventually(t, func() bool { return storagetest.CopyEmbedded(t, dir, killed) })
	again, closeAgain := openIn(t, killed)
	defer closeAgain()
	got, err := again.activations.Get(t.Context(), a.Tenant, a.ActivationID)
	if err != nil || got.Status != api.StatusSuccess {
		t.Errorf("Get: got %+v and error %v, want status %s", got, err, api.StatusSuccess)
	}
}

// TestEmbeddedJournalDamage: an entry cut short at the end was never answered for;
// anything else that is wrong is reported.
func TestEmbeddedJournalDamage(t *testing.T) {
	t.Parallel()
	entry := func(tail ...byte) []byte { return append([]byte("\x00\x00\x00\x05\x01\x02\x03\x04"), tail...) }
	for name, tt := range map[string]struct {
		raw  []byte
		want string
	}{
		"empty":            {nil, ""},
		"header cut short": {entry()[:3], ""},
		"body cut short":   {entry(1, 2), ""},
		"zeros to the end": {make([]byte, 100), ""},
		"zeros within":     {append(make([]byte, 100), 1), "empty"},
		"wrong checksum":   {entry(1, 2, 3, 4, 5), "checksum"},
		"absurd length":    {bytes.Repeat([]byte{0xff}, 100), "too long"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "store.journal.1"), tt.raw, 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
		e, err := embedded.Open(dir, zap.NewNop())
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Open: got error %v, want one with %q, or none if that is empty", name, err, tt.want)
		}
		if err == nil {
			if err := e.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
	}
}
