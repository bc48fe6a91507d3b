package deploy_test

import (
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkRebuild builds a clone of the repository in another folder and compares the binary with
// that of the release: the same commit makes the same bytes.
func checkRebuild(t *testing.T, binary, version, arch string) {
	t.Helper()
	if status, err := exec.Command("git", "-C", "..", "status", "--porcelain").Output(); err != nil || len(status) > 0 {
		t.Logf("the rebuild is not checked: this tree is no clean checkout of a commit (%v)\n%s", err, status)
		return
	}
	clone := filepath.Join(t.TempDir(), "another", "folder")
	run(t, ".", "git", "clone", "--quiet", "--no-hardlinks", "..", clone)
	run(t, clone, "make", "build", "VERSION="+version, "GOOS=linux", "GOARCH="+arch)
	if got, want := digest(t, filepath.Join(clone, "bin", "sous")), digest(t, binary); got != want {
		t.Errorf("a second build has the SHA-256 %x, want %x as the first", got, want)
	}
}

func digest(t *testing.T, path string) [sha256.Size]byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	return sha256.Sum256(content)
}

// installation is a folder that dpkg installs into, on a system with systemd. systemctl is a
// script that records its arguments.
type installation struct {
	t    *testing.T
	root string
	bin  string // holds systemctl
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	i := &installation{t: t, root: t.TempDir(), bin: t.TempDir()}
	for _, folder := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "run/systemd/system"} {
		if err := os.MkdirAll(filepath.Join(i.root, folder), 0o755); err != nil {
			t.Fatalf("os.MkdirAll: %v", err)
		}
	}
	i.write("var/lib/dpkg/status", "")
	script := "#!/bin/sh\necho \"$@\" >>'" + i.root + "/systemctl'\n"
	if err := os.WriteFile(filepath.Join(i.bin, "systemctl"), []byte(script), 0o755); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	return i
}

// dpkg runs dpkg on the folder and returns the calls of systemctl that it made.
func (i *installation) dpkg(args ...string) string {
	i.t.Helper()
	i.write("systemctl", "")
	cmd := exec.CommandContext(i.t.Context(), "dpkg", append([]string{
		"--root=" + i.root, "--log=/dev/null", "--force-not-root", "--force-script-chrootless", "--force-confold",
	}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+i.bin+":"+os.Getenv("PATH")+":/usr/sbin:/sbin")
	if out, err := cmd.CombinedOutput(); err != nil {
		i.t.Fatalf("dpkg %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return i.read("systemctl")
}

func (i *installation) write(name, content string) {
	i.t.Helper()
	if err := os.WriteFile(filepath.Join(i.root, name), []byte(content), 0o600); err != nil {
		i.t.Fatalf("os.WriteFile: %v", err)
	}
}

// read returns the content of a file of the folder, "(none)" if there is no such file.
func (i *installation) read(name string) string {
	i.t.Helper()
	content, err := os.ReadFile(filepath.Join(i.root, name))
	if os.IsNotExist(err) {
		return "(none)"
	} else if err != nil {
		i.t.Fatalf("os.ReadFile: %v", err)
	}
	return string(content)
}

// checkInstallation installs, upgrades, removes and purges a package with Debian's own tool. An
// upgrade keeps what the administrator wrote and leaves the service running; a removal stops
// it; a purge leaves no file, because the environment file may hold a password.
func checkInstallation(t *testing.T, path, arch string) {
	t.Helper()
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Logf("the installation of %s is not checked: this system has no dpkg", path)
		return
	}
	const environment, settings = "etc/sous/environment", "etc/sous/sous.yaml"
	i := newInstallation(t)
	if got := i.dpkg("--install", path); got != "daemon-reload\n" {
		t.Errorf("the installation called systemctl with %q, want daemon-reload", got)
	}
	info, err := os.Stat(filepath.Join(i.root, environment))
	if err != nil || info.Mode() != 0o600 || info.Size() != 0 {
		t.Errorf("the environment file after the installation is %v, %v, want an empty one with the mode 600", info, err)
	}
	if got := run(t, ".", filepath.Join(i.root, "usr/bin/sous"), "version"); !strings.HasPrefix(got, "sous ") {
		t.Errorf("the installed program printed %q, want its version", got)
	}

	i.write(environment, "SOUS_STORE=redis://:secret@127.0.0.1:6666\n")
	i.write(settings, "listen: 127.0.0.1:9\n")
	if got := i.dpkg("--install", path); got != "daemon-reload\n" {
		t.Errorf("the upgrade called systemctl with %q, want daemon-reload and no restart", got)
	}
	if got := i.read(environment) + i.read(settings); got != "SOUS_STORE=redis://:secret@127.0.0.1:6666\nlisten: 127.0.0.1:9\n" {
		t.Errorf("the settings after the upgrade are %q, want those that the administrator wrote", got)
	}

	if got := i.dpkg("--remove", "sous:"+arch); got != "disable --now sous\ndaemon-reload\n" {
		t.Errorf("the removal called systemctl with %q, want disable --now sous and daemon-reload", got)
	}
	if got := i.read("usr/bin/sous")[:6]; got != "(none)" {
		t.Errorf("the program after the removal begins with %q, want no file", got)
	}
	if got := i.read(environment); got == "(none)" {
		t.Error("the removal deleted the environment file, want it kept until a purge")
	}
	i.dpkg("--purge", "sous:"+arch)
	if _, err := os.Stat(filepath.Join(i.root, "etc/sous")); !os.IsNotExist(err) {
		t.Errorf("after the purge, the settings are %q and %q (%v), want no folder", i.read(environment), i.read(settings), err)
	}
}
