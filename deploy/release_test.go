package deploy_test

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// machines are those that a release is for.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// TestRelease builds a release and looks at every file of it. The release is for this machine
// alone, or for the architectures that the environment variable RELEASE_ARCHS names.
func TestRelease(t *testing.T) {
	t.Parallel()
	host := runtime.GOARCH
	archs := strings.Fields(cmp.Or(os.Getenv("RELEASE_ARCHS"), host))
	dist := filepath.Join(t.TempDir(), "dist")
	run(t, "..", "make", "release", "DIST="+dist, "RELEASE_ARCHS="+strings.Join(archs, " "))
	run(t, dist, "sha256sum", "--check", "--strict", "SHA256SUMS")
	version := strings.TrimSpace(run(t, "..", "sed", "-n", `s/^const Release = "\(.*\)"$/\1/p`, "cmd/sous/internal/build/build.go"))
	var want []string
	for _, arch := range archs {
		binary := filepath.Join(dist, "sous-linux-"+arch)
		checkBinary(t, binary, machines[arch])
		if arch == host {
			if got := run(t, ".", binary, "version"); !strings.HasPrefix(got, "sous "+version+" (go") {
				t.Errorf("sous version = %q, want %s", got, version)
			}
		}
		archive := "sous-" + version + "-linux-" + arch
		checkArchive(t, filepath.Join(dist, archive+".tar.gz"), archive)
		checkPackage(t, filepath.Join(dist, "sous_"+version+"_"+arch+".deb"), version, arch)
		want = append(want, "sous-linux-"+arch, archive+".tar.gz", "sous_"+version+"_"+arch+".deb")
	}
	checkInstallation(t, filepath.Join(dist, "sous_"+version+"_"+host+".deb"), host)
	checkRebuild(t, filepath.Join(dist, "sous-linux-"+host), version, host)
	sbom := "sous-" + version + ".cdx.json"
	checkSBOM(t, filepath.Join(dist, sbom), filepath.Join(dist, "sous-linux-"+host))
	want = append(want, sbom, "Dockerfile", "SHA256SUMS")
	slices.Sort(want)
	files, err := filepath.Glob(filepath.Join(dist, "*"))
	if err != nil {
		t.Fatalf("filepath.Glob: %v", err)
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	if !slices.Equal(files, want) {
		t.Errorf("the release has the files %q, want %q", files, want)
	}
}

// run returns what a command prints on stdout. One that fails ends the test.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	// Release binaries are built without cgo, whatever the test is built with.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "MAKEFLAGS=")
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Logf("%s", failed.Stderr)
		}
		t.Fatalf("run %s %s: %v", name, strings.Join(args, " "), err)
	}
	return string(out)
}

// checkBinary checks that a binary is static, for its machine, and holds the sandbox child.
func checkBinary(t *testing.T, path string, machine elf.Machine) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatalf("elf.Open: %v", err)
	}
	defer file.Close()
	if file.Machine != machine {
		t.Errorf("%s is for the machine %s, want %s", path, file.Machine, machine)
	}
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			t.Errorf("%s needs a dynamic linker, want a static binary", path)
		}
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatalf("buildinfo.ReadFile: %v", err)
	}
	if !slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-tags" && slices.Contains(strings.Split(s.Value, ","), "sandboxchild")
	}) {
		t.Errorf("%s was built with %v, want the tag sandboxchild among them", path, info.Settings)
	}
}

func checkArchive(t *testing.T, path, folder string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatalf("os.Open: %v", err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatalf("gzip.NewReader: %v", err)
	}
	var names []string
	for files := tar.NewReader(unpacked); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("Next: %v", err)
		}
		names = append(names, header.Name)
		if header.Uid != 0 || strings.HasSuffix(header.Name, "/sous") && header.Mode&0o111 != 0o111 {
			t.Errorf("%s in %s: got user %d and mode %o, want user 0, and sous executable by all", header.Name, path, header.Uid, header.Mode)
		}
	}
	want := []string{"", "CHANGELOG.md", "LICENSE", "README.md", "kvrocks.conf", "sous", "sous.service"}
	for i := range want {
		want[i] = folder + "/" + want[i]
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("%s holds %q, want %q", path, names, want)
	}
}

// checkPackage checks a Debian package with Debian's own tool.
func checkPackage(t *testing.T, path, version, arch string) {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Logf("%s is not checked: this system has no dpkg-deb", path)
		return
	}
	want := "Package: sous\nVersion: " + version + "\nArchitecture: " + arch + "\n"
	if got := run(t, ".", "dpkg-deb", "--field", path, "Package", "Version", "Architecture"); got != want {
		t.Errorf("the fields of %s are\n%swant\n%s", path, got, want)
	}
	root := t.TempDir()
	run(t, ".", "dpkg-deb", "--raw-extract", path, root)
	for name, mode := range map[string]os.FileMode{
		"usr/bin/sous": 0o755, "usr/lib/systemd/system/sous.service": 0o644, "etc/sous/sous.yaml": 0o644, "usr/share/doc/sous/copyright": 0o644,
		"usr/share/bash-completion/completions/sous": 0o644, "DEBIAN/postinst": 0o755, "DEBIAN/prerm": 0o755, "DEBIAN/postrm": 0o755,
	} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil || info.Mode() != mode || info.Size() == 0 {
			t.Errorf("%s in %s: got %v, %v, want a file with the mode %o", name, path, info, err, mode)
		}
	}
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/sous.service"))
	if err != nil || !strings.Contains(string(unit), "ExecStart=/usr/bin/sous serve --config /etc/sous/sous.yaml") {
		t.Errorf("unit of %s: got error %v and %s, want it to start /usr/bin/sous", path, err, unit)
	}
	kept, err := os.ReadFile(filepath.Join(root, "DEBIAN/conffiles"))
	if err != nil || string(kept) != "/etc/sous/sous.yaml\n" {
		t.Errorf("the configuration files of %s are %q, %v, want /etc/sous/sous.yaml", path, kept, err)
	}
}

// checkSBOM checks that the bill of materials names every module of the server and of the
// sandbox child with its version.
func checkSBOM(t *testing.T, path, binary string) {
	t.Helper()
	text, err := os.ReadFile(path)
	var sbom struct {
		BOMFormat  string
		Components []struct {
			Name, Version string
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &sbom)
	}
	if err != nil || sbom.BOMFormat != "CycloneDX" {
		t.Fatalf("%s: %v, want a bill of materials of CycloneDX", path, err)
	}
	named := map[string]bool{}
	for _, c := range sbom.Components {
		named[c.Name+" "+c.Version] = true
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatalf("buildinfo.ReadFile: %v", err)
	}
	var modules []string
	for _, module := range info.Deps {
		modules = append(modules, module.Path+" "+module.Version)
	}
	child := run(t, "..", "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./invoker/sandbox/childmain")
	for line := range strings.Lines(child) {
		module := strings.TrimSpace(line)
		if module != "" {
			modules = append(modules, module)
		}
	}
	if len(modules) < 50 {
		t.Errorf("%s has %d modules, want more than 50", binary, len(modules))
	}
	for _, module := range modules {
		if !named[module] {
			t.Errorf("%s: got no module %s, want it named", path, module)
		}
	}
}
