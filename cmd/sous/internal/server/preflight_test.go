package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codesous/sous/storage/secrets"
	"time"
)

// wantFinding checks the level of a finding, and that exactly those that are not ok say how to
// mend them.
func wantFinding(t *testing.T, f Finding, level, detail, mend string) {
	t.Helper()
	if f.Level != level || !strings.Contains(f.Detail, detail) || !strings.Contains(f.Mend, mend) || (mend == "") != (f.Mend == "") {
		t.Errorf("got %+v, want level %s, a detail with %q and a mend with %q", f, level, detail, mend)
	}
}

func TestPreflightExaminesThePort(t *testing.T) {
	t.Parallel()
	wantFinding(t, checkListen(t.Context(), "127.0.0.1:0"), LevelOK, "is free", "")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	defer l.Close()
	wantFinding(t, checkListen(t.Context(), l.Addr().String()), LevelFail, "is used by server.test (pid ", "sous dev --listen 127.0.0.1:0")
	wantFinding(t, checkListen(t.Context(), "192.0.2.1:8080"), LevelFail, "is no address of this machine", "--listen :8080")
}

func TestPreflightExaminesOpenFiles(t *testing.T) {
	t.Parallel()
	wantFinding(t, fileFinding(65_536, settings{}), LevelOK, "32768 connections", "")
	wantFinding(t, fileFinding(1024, settings{}), LevelWarn, "368 connections only", "ulimit -n 65536")
	wantFinding(t, fileFinding(256, settings{}), LevelFail, "256 open files", "ulimit -n 65536")
}

func TestPreflightExaminesMemory(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	wantFinding(t, memoryFinding(8*gib, 0), LevelOK, "14 of 128 MB at a time", "")
	wantFinding(t, memoryFinding(1*gib, 0), LevelWarn, "1 of 128 MB at a time", "docker run --memory")
	wantFinding(t, memoryFinding(gib/4, 0), LevelFail, "cannot run", "docker run --memory")
	wantFinding(t, memoryFinding(2*gib, 4*gib), LevelFail, "more than there is", "--sandbox-memory-budget 1024")
}

func TestPreflightExaminesTheDataFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wantFinding(t, dataDirFinding(filepath.Join(dir, "new", "er")), LevelOK, "does not exist yet: sous dev creates it", "")
	wantFinding(t, dataDirFinding(dir), LevelOK, "free", "")
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatalf("WriteFile: %v", err)
	}
	wantFinding(t, dataDirFinding(file), LevelFail, "is no folder", "--data-dir DIR")
	wantFinding(t, spaceFinding("/d", "/d", 100<<20), LevelWarn, "100", "du -sh")
	wantFinding(t, spaceFinding("/d", "/d", 1<<20), LevelFail, "1", "du -sh")
	if os.Getuid() == 0 {
		return // root may write everywhere
	}
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatalf("Mkdir: %v", err)
	}
	wantFinding(t, dataDirFinding(closed), LevelFail, "may not write", "chmod u+rwx")
}

func TestPreflightReadsKeyFileAndCertificate(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "secrets.key")
	wantFinding(t, checkSecretsKey(settings{}), LevelOff, "sous dev makes one", "")
	wantFinding(t, checkSecretsKey(settings{Store: "redis://x"}), LevelOff, "neither write nor read", "sous secret keygen")
	wantFinding(t, checkSecretsKey(settings{SecretsKey: key}), LevelFail, key, "sous secret keygen")
	if _, err := secrets.Keygen(key, time.Now()); err != nil {
		t.Fatalf("Keygen: %v", err)
	}
	wantFinding(t, checkSecretsKey(settings{SecretsKey: key}), LevelOK, key, "")
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatalf("Chmod: %v", err)
	}
	wantFinding(t, checkSecretsKey(settings{SecretsKey: key}), LevelFail, key, "chmod 600")
	wantFinding(t, checkCertificate(settings{}), LevelOff, "plain HTTP", "")
	wantFinding(t, checkCertificate(settings{Network: networkSettings{TLSCert: key, TLSKey: key}}), LevelFail, "", "openssl x509")
}

// It sets the environment of the process, so it is not parallel.
func TestPreflightReadsTheSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("SOUS_LISTEN", "127.0.0.1:0")
	wantFinding(t, RunPreflight(t.Context(), PreflightOptions{}).Findings[0], LevelOff, "flags and variables only", "")
	if err := os.WriteFile("sous.yaml", []byte("store: redis://127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatalf("WriteFile: %v", err)
	}
	found := RunPreflight(t.Context(), PreflightOptions{})
	wantFinding(t, found.Findings[0], LevelOK, "sous.yaml", "")
	if found.Store != "redis://127.0.0.1:1" || found.Listen != "127.0.0.1:0" || len(found.Findings) != 7 {
		t.Errorf("got %+v, want the store of the file, the address of the variable and 7 findings", found)
	}
	if err := os.WriteFile("sous.yaml", []byte("storre: redis://127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatalf("WriteFile: %v", err)
	}
	wantFinding(t, RunPreflight(t.Context(), PreflightOptions{}).Findings[0], LevelFail, "unknown key", "sous.yaml")
}
