package sdk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/cmd/sous/soustest"
)

// TestUnits runs the unit tests of each package. The compiler has checked the types of TypeScript.
func TestUnits(t *testing.T) {
	t.Parallel()
	commands := map[string][]string{
		"typescript": {"sh", "-c", "node --test dist/test/*.test.js"},
		"python":     {python, "-B", "-W", "error", "-m", "unittest", "discover", "-t", ".", "tests"},
	}
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			command := commands[l.name]
			if _, err := run(l.dir(t), command[0], command[1:]...); err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
}

// TestTypes checks the types of the package in Python, and that programs see them.
func TestTypes(t *testing.T) {
	t.Parallel()
	dir := languages[1].dir(t)
	program := "import code_sous\n\ncode_sous.Worker(1)\n"
	if err := os.WriteFile(filepath.Join(dir, "wrong.py"), []byte(program), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	if _, err := run(dir, "mypy", "code_sous", "tests"); err != nil {
		t.Errorf("tools/need-python-worker.sh installs mypy: %v", err)
	}
	if _, err := run(dir, "mypy", "wrong.py"); err == nil || !strings.Contains(err.Error(), `has incompatible type "int"`) {
		t.Errorf("mypy of a wrong program: got error %v, want that of an incompatible type", err)
	}
}

// TestQuickStarts runs the first program of each README as it is there.
func TestQuickStarts(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			dir := l.dir(t)
			server := soustest.Start(t)
			command := map[string]func(*testing.T, string) []string{"typescript": compileQuickStart, "python": writeQuickStart}[l.name](t, dir)
			p := &process{cmd: exec.Command(command[0], command[1:]...), exited: make(chan error, 1)}
			p.cmd.Dir = dir
			p.cmd.Env = append(os.Environ(), "SOUS_URL="+server.URL, "SOUS_KEY=", "PYTHONPATH=.")
			p.begin(t)
			platformtest.Eventually(t, patience, "the handler prints its letter", func() error {
				if said := p.output(); !strings.Contains(said, "a letter to ada@example.com\n") {
					return errors.New(said)
				}
				return nil
			})
			p.signal(t, syscall.SIGTERM)
			if code := p.wait(t); code != 0 {
				t.Errorf("exit code: got %d, want 0", code)
			}
			if out := server.Sous(t, "job", "list", "emails", "--state", string(api.JobCompleted)); !strings.Contains(out, "completed") {
				t.Errorf("completed jobs: got %s, want one", out)
			}
		})
	}
}

// quickStart returns the first block of that language of a README.
func quickStart(t *testing.T, dir, language string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	_, rest, found := strings.Cut(string(text), "```"+language+"\n")
	program, _, ends := strings.Cut(rest, "\n```")
	if !found || !ends {
		t.Fatalf("README.md: got no block of %s, want one", language)
	}
	page, err := os.ReadFile("../docs/workers.md")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	if !strings.Contains(string(page), "```"+language+"\n"+program+"\n```") {
		t.Errorf("docs/workers.md: got another block of %s, want that of the README, which is run here", language)
	}
	return program + "\n"
}

// compileQuickStart compiles the program beside the package, whose name it imports, and returns its
// command.
func compileQuickStart(t *testing.T, dir string) []string {
	t.Helper()
	at := filepath.Join(dir, "quickstart")
	config := `{"extends": "../tsconfig.json", "compilerOptions": {"outDir": ".", "rootDir": "."}, "include": ["*.ts"], "exclude": []}`
	for name, text := range map[string]string{"start.ts": quickStart(t, dir, "ts"), "tsconfig.json": config} {
		if err := errors.Join(os.MkdirAll(at, 0o700), os.WriteFile(filepath.Join(at, name), []byte(text), 0o600)); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
	if _, err := run(dir, "node", "node_modules/typescript/bin/tsc", "-p", "quickstart"); err != nil {
		t.Fatalf("run: %v", err)
	}
	return []string{"node", "quickstart/start.js"}
}

// writeQuickStart writes the program to a file and returns its command.
func writeQuickStart(t *testing.T, dir string) []string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "start.py"), []byte(quickStart(t, dir, "python")), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	if _, err := run(dir, "mypy", "--strict", "start.py"); err != nil {
		t.Errorf("run: %v", err)
	}
	return []string{python, "-B", "start.py"}
}
