package docstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/storage/storagetest"
)

// skipReasons lists why a block cannot run, with the number of blocks for which this is
// accepted: a block more needs a change here, and so does one less.
var skipReasons = map[string]struct {
	why    string
	blocks int
}{
	"docker":  {"needs Docker and its images", 5},
	"root":    {"changes the machine: services, users, files below /etc", 5},
	"build":   {"builds the program, which the test has done", 3},
	"server":  {"starts the server that the test has started", 1},
	"cadence": {"needs a Cadence server; examples/cadence_test.go has one", 2},
	"hosts":   {"addresses other machines", 5},
	"asks":    {"asks for input on a terminal, or opens one", 2},
}

// storeURL is the store server that pages name. A page with it gets a redis-server.
const storeURL = "redis://127.0.0.1:6379"

// pageTimeout bounds the blocks of one page.
const pageTimeout = 2 * time.Minute

// TestPages runs the commands of every page.
func TestPages(t *testing.T) {
	t.Parallel()
	executable := soustest.Executable(t)
	for _, p := range pages(t) {
		if !slices.ContainsFunc(p.blocks, (*block).runs) {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(p.name), ".md"), func(t *testing.T) {
			t.Parallel()
			for _, b := range p.blocks {
				if _, err := exec.LookPath(b.needs); b.needs != "" && err != nil {
					t.Skipf("%s:%d: %s is not installed: run tools/need-npm.sh, as make test does", p.name, b.line, b.needs)
				}
			}
			r := &run{page: p, dir: t.TempDir()}
			r.replace(t, soustest.Start(t).URL)
			r.check(t, r.do(t, executable))
		})
	}
}

func (b *block) runs() bool { return b.language == "sh" && b.skip == "" }

// TestSkips counts the blocks that do not run.
func TestSkips(t *testing.T) {
	t.Parallel()
	got := map[string]int{}
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			got[b.skip]++
		}
	}
	for reason, r := range skipReasons {
		if got[reason] != r.blocks {
			t.Errorf("%d blocks have skip=%s, want %d: run more of them, or correct the number", got[reason], reason, r.blocks)
		}
	}
}

// A run executes the blocks of one page.
type run struct {
	page page
	dir  string
	// the addresses of the page and those of the test, in turn
	toTest, toPage *strings.Replacer
}

// replace prepares the replacement of the addresses that pages name.
func (r *run) replace(t *testing.T, server string) {
	t.Helper()
	_, address, _ := strings.Cut(server, "://")
	there := []string{"127.0.0.1:8080", address}
	if strings.Contains(script(r.page.blocks), storeURL) {
		there = append(there, storeURL, storagetest.Redis(t).URL)
	}
	for _, port := range []string{"8081", "8082", "9090"} {
		there = append(there, "127.0.0.1:"+port, freeAddress(t))
	}
	back := slices.Clone(there)
	slices.Reverse(back)
	r.toTest, r.toPage = strings.NewReplacer(there...), strings.NewReplacer(back...)
}

// freeAddress returns an address on which no server listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// do runs the script of the page and returns its output.
func (r *run) do(t *testing.T, executable string) string {
	t.Helper()
	bin := filepath.Join(r.dir, "bin")
	if err := errors.Join(os.Mkdir(bin, 0o755), os.Symlink(executable, filepath.Join(bin, "sous"))); err != nil {
		t.Fatalf("prepare %s: %v", bin, err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatalf("UserHomeDir: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), pageTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", r.toTest.Replace(script(r.page.blocks)))
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "HOME="+r.dir, "XDG_CONFIG_HOME="+r.dir+"/.config", "XDG_STATE_HOME="+r.dir+"/.state",
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "SOUS_URL="+r.toTest.Replace("http://127.0.0.1:8080"), "TZ=UTC",
		// npm takes packages from the cache that the tests of examples fill.
		"npm_config_cache="+home+"/.npm", "npm_config_prefer_offline=true", "npm_config_fund=false", "npm_config_audit=false", "npm_config_update_notifier=false")
	// A page that takes too long ends with the programs that it started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	output := r.toPage.Replace(out.String())
	if err != nil {
		parts := strings.Split(output, "\n"+mark)
		i, text, _ := strings.Cut(parts[len(parts)-1], "\n")
		lines := strings.Split(text, "\n")
		text = strings.Join(lines[max(0, len(lines)-40):], "\n") // a loop may have printed thousands
		t.Fatalf("%s: got %v, want success. The output of the block ends with\n%s", r.place(i), err, text)
	}
	return output
}

// place returns the file and line of the block with a number.
func (r *run) place(number string) string {
	var i int
	if _, err := fmt.Sscan(number, &i); err != nil || i >= len(r.page.blocks) {
		return r.page.name
	}
	return fmt.Sprintf("%s:%d", r.page.name, r.page.blocks[i].line)
}

// check compares the output of each block with the expected one.
func (r *run) check(t *testing.T, output string) {
	t.Helper()
	parts := strings.Split(output, "\n"+mark)[1:]
	if len(parts) != len(r.page.blocks)+1 {
		t.Fatalf("%s: %d blocks ran, want %d", r.page.name, len(parts)-1, len(r.page.blocks))
	}
	for i, b := range r.page.blocks {
		if b.expected == nil || b.skip != "" {
			continue
		}
		_, got, _ := strings.Cut(parts[i], "\n")
		if b.inBack {
			raw, err := os.ReadFile(fmt.Sprintf("%s/.background.%d", r.dir, i))
			if err != nil {
				t.Fatalf("ReadFile: %v", err)
			}
			got = r.toPage.Replace(string(raw))
		}
		if !matches(b.expected.code, got) {
			t.Errorf("%s:%d: the output is\n%s\nwant\n%s", r.page.name, b.line, trimmed(got), b.expected.code)
		}
	}
}
