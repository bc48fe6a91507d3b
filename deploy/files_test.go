package deploy_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/cmd/sous/soustest"
)

// lines returns the lines of a file, without empty lines and comments.
func lines(t *testing.T, file string) (out []string) {
	t.Helper()
	for line := range strings.Lines(read(t, file)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// option returns the value of a setting in kvrocks.conf.
func option(t *testing.T, name string) string {
	t.Helper()
	for _, line := range lines(t, "kvrocks.conf") {
		if key, value, _ := strings.Cut(line, " "); key == name {
			return value
		}
	}
	t.Fatalf("kvrocks.conf: got no %s, want it", name)
	return ""
}

// directive returns the value of a duration in the Caddyfile.
func directive(t *testing.T, name string) time.Duration {
	t.Helper()
	for _, line := range lines(t, "Caddyfile") {
		if key, value, _ := strings.Cut(line, " "); key == name {
			d, err := time.ParseDuration(value)
			if err != nil {
				t.Fatalf("time.ParseDuration: %v", err)
			}
			return d
		}
	}
	t.Fatalf("Caddyfile: got no %s, want it", name)
	return 0
}

func TestCaddyfile(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	text := read(t, "Caddyfile")
	var want []string
	for _, name := range c.replicas() {
		_, port, _ := strings.Cut(c.Services[name].Environment["SOUS_LISTEN"], ":")
		want = append(want, name+":"+port)
	}
	if proxied := "reverse_proxy " + strings.Join(want, " ") + " {"; !strings.Contains(text, proxied) {
		t.Errorf("Caddyfile: got no %q, want it", proxied)
	}
	for _, variable := range regexp.MustCompile(`\{\$([A-Z_]+)`).FindAllStringSubmatch(text, -1) {
		if _, ok := c.Services["proxy"].Environment[variable[1]]; !ok {
			t.Errorf("docker-compose.yml: got no variable %s of the proxy, want it", variable[1])
		}
	}
	if c.Services["proxy"].Stop <= directive(t, "grace_period") {
		t.Errorf("proxy: got stop_grace_period %s, want more than the grace_period %s of the Caddyfile", c.Services["proxy"].Stop, directive(t, "grace_period"))
	}
	route := regexp.MustCompile(`health_uri (\S+)`).FindStringSubmatch(text)
	server := soustest.Start(t)
	response, err := http.Get(server.URL + route[1])
	if err != nil {
		t.Fatalf("http.Get: %v", err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("GET %s of a ready server: got %s, want 200", route[1], response.Status)
	}
}

// kvrocksOptions lists names that KVRocks knows (src/config/config.cc). It silently
// ignores other names.
var kvrocksOptions = strings.Fields(`
	bind port dir backup-dir pidfile log-dir log-level db-name maxclients workers timeout requirepass
	lua-strict-key-accessing redis-cursor-compatible resp3-enabled
	rocksdb.write_options.sync rocksdb.write_options.disable_wal rocksdb.block_cache_size rocksdb.cache_index_and_filter_blocks
	rocksdb.write_buffer_size rocksdb.max_write_buffer_number rocksdb.max_open_files
	rocksdb.compression rocksdb.compression_start_level
	rocksdb.enable_blob_files rocksdb.min_blob_size rocksdb.enable_blob_garbage_collection
	bgsave-cron max-backup-to-keep max-backup-keep-hours`)

func TestKVRocksConf(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, line := range lines(t, "kvrocks.conf") {
		name, value, _ := strings.Cut(line, " ")
		if !slices.Contains(kvrocksOptions, name) || value == "" || seen[name] {
			t.Errorf("kvrocks.conf: got line %q, want an option of KVRocks with a value, once", line)
		}
		seen[name] = true
	}
	for name, want := range map[string]string{
		"lua-strict-key-accessing": "yes", "redis-cursor-compatible": "yes", "rocksdb.enable_blob_files": "yes",
	} {
		if got := option(t, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if client := strings.Contains(read(t, "../storage/connect.go"), "o.Protocol = 2"); client != (option(t, "resp3-enabled") == "no") {
		t.Error("the client and resp3-enabled do not fit together")
	}
}

// TestKVRocksConfMeetsTheRequirements checks that kvrocks.conf has every setting that
// docs/storage.md lists, with the required value.
func TestKVRocksConfMeetsTheRequirements(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(read(t, "../docs/storage.md"), "\n### KVRocks\n")
	section, _, _ = strings.Cut(section, "\n### ")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (`[^`]+`|either) \\|").FindAllStringSubmatch(section, -1)
	required := map[string]string{}
	for _, row := range rows {
		if strings.Contains(row[1], "-") || strings.Contains(row[1], ".") {
			required[row[1]] = strings.Trim(row[2], "`")
		}
	}
	if len(required) != 5 {
		t.Errorf("got %d settings of KVRocks in docs/storage.md, want 5: %v", len(required), required)
	}
	for name, want := range required {
		if got := option(t, name); want != "either" && got != want {
			t.Errorf("got %s %s, want %s as docs/storage.md requires", name, got, want)
		}
	}
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	text := read(t, "Dockerfile")
	module := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))
	if from := regexp.MustCompile(`FROM golang:(\d+\.\d+)\.\d+(?:@sha256:[0-9a-f]{64})? AS build`).FindStringSubmatch(text); from == nil || from[1] != module[1] {
		t.Errorf("Dockerfile: got golang image %q, want Go %s of go.mod", from, module[1])
	}
	if strings.Contains(text, "# syntax=") {
		t.Error("Dockerfile: got a line with # syntax=, whose image no version pins; the builder has a syntax of its own")
	}
	makefile := read(t, "../Makefile")
	for _, want := range []string{"\nbuild:", "-o $(BIN)/sous ", "$(VERSION)"} {
		if !strings.Contains(makefile, want) {
			t.Errorf("Makefile: got no %q, want it, because the Dockerfile needs it", want)
		}
	}
	for _, want := range []string{
		`make build VERSION="$VERSION"`, "COPY --from=build /src/bin/sous /sous", `ENTRYPOINT ["/sous"]`, "USER 65532:65532",
		"ca-certificates.crt /etc/ssl/certs/ca-certificates.crt",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("Dockerfile: got no %q, want it", want)
		}
	}
	c := readCompose(t)
	for _, name := range c.replicas() {
		listen := c.Services[name].Environment["SOUS_LISTEN"]
		health := regexp.MustCompile(`HEALTHCHECK .*CMD \["(\S+)", "(\S+)"\]`).FindStringSubmatch(text)
		checkHealth(t, "Dockerfile", health[1:], listen)
		if _, port, _ := strings.Cut(listen, ":"); !strings.Contains(text, "EXPOSE "+port) {
			t.Errorf("Dockerfile: got no EXPOSE %s, want it", port)
		}
	}
}

// TestDockerignore checks that the files that the build needs are not ignored, and
// all others are.
func TestDockerignore(t *testing.T) {
	t.Parallel()
	ignored := lines(t, "Dockerfile.dockerignore")
	if ignored[0] != "*" {
		t.Fatalf("Dockerfile.dockerignore: got first line %q, want *", ignored[0])
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatalf("filepath.Abs: %v", err)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		`{{if .Module}}{{if .Module.Main}}{{.Dir}}{{range .EmbedFiles}} {{.}}{{end}}{{end}}{{end}}`, "./cmd/sous", "./invoker/sandbox/childmain", "./tools/compress")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("Output: %v", err)
	}
	needed := []string{"Makefile", "go.mod", "go.sum"}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		dir, err := filepath.Rel(root, fields[0])
		if err != nil {
			t.Fatalf("filepath.Rel: %v", err)
		}
		needed = append(needed, strings.Split(dir, string(filepath.Separator))[0])
		for _, file := range fields[1:] {
			if strings.Contains(file, "testdata") || strings.HasSuffix(file, "_test.go") {
				t.Errorf("got embedded file %s/%s, want none that Dockerfile.dockerignore leaves out", dir, file)
			}
		}
	}
	slices.Sort(needed)
	needed = slices.Compact(needed)
	for _, name := range needed {
		if !slices.Contains(ignored, "!"+name) {
			t.Errorf("Dockerfile.dockerignore: got %s ignored, want it included, because the build needs it", name)
		}
	}
	for _, line := range ignored {
		if name, ok := strings.CutPrefix(line, "!"); ok && !slices.Contains(needed, name) {
			t.Errorf("Dockerfile.dockerignore: got %s included, want it ignored, because the build does not need it", name)
		}
	}
}

func TestUnit(t *testing.T) {
	t.Parallel()
	unit := make(map[string]string)
	for _, line := range lines(t, "sous.service") {
		key, value, _ := strings.Cut(line, "=")
		unit[key] = value
	}
	command := strings.Fields(unit["ExecStart"])
	if len(command) < 2 || filepath.Base(command[0]) != "sous" {
		t.Fatalf("sous.service: got ExecStart %q, want sous with a command", command)
	}
	// An unknown flag is an error even in front of --help.
	flags(t, command[1:]...)
	stop, err := time.ParseDuration(unit["TimeoutStopSec"])
	if need := 5*time.Second + 30*time.Second + closeTimeout(t); err != nil || stop <= need {
		t.Errorf("sous.service: got TimeoutStopSec %s (%v), want more than %s", stop, err, need)
	}
	for key, want := range map[string]string{
		"KillMode": "mixed", "OOMPolicy": "continue", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "DynamicUser": "yes",
		"RestrictNamespaces": "user net",
	} {
		if unit[key] != want {
			t.Errorf("sous.service: got %s=%q, want %q", key, unit[key], want)
		}
	}
	if tool, err := exec.LookPath("systemd-analyze"); err == nil {
		// systemd-analyze also checks that the program exists.
		text := strings.ReplaceAll(read(t, "sous.service"), command[0], soustest.Executable(t))
		file := filepath.Join(t.TempDir(), "sous.service")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
		out, err := exec.CommandContext(t.Context(), tool, "verify", file).CombinedOutput()
		// docs/deploy.md: systemd before 254 ignores this key.
		warnings := regexp.MustCompile(`(?m)^.*Unknown key (name )?'DelegateSubgroup'.*\n`).ReplaceAll(out, nil)
		if err != nil || len(warnings) > 0 {
			t.Errorf("systemd-analyze verify: got error %v and output %s, want no error and no warnings", err, out)
		}
	}
}

// TestDocument checks that the commands, files and settings in docs/deploy.md exist.
func TestDocument(t *testing.T) {
	t.Parallel()
	text := read(t, "../docs/deploy.md")
	help := flags(t, "serve")
	for _, name := range regexp.MustCompile("SOUS_[A-Z_]+[A-Z]").FindAllString(text, -1) {
		flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "SOUS_")), "_", "-")
		if !hasFlag(help, flag) && name != "SOUS_KEY" && name != "SOUS_URL" {
			t.Errorf("docs/deploy.md: got %s, want a setting", name)
		}
	}
	for _, found := range regexp.MustCompile(`deploy/[A-Za-z.-]+[a-z]`).FindAllString(text, -1) {
		if _, err := os.Stat(filepath.Join("..", found)); err != nil {
			t.Errorf("os.Stat: %v", err)
		}
	}
	commands := regexp.MustCompile(`(?m)^(?:sous|.*(?:/sous|sous-1)) ((?:health|keys|doctor|fn|secret|serve|version)\b[a-z ]*)(.*)$`).FindAllStringSubmatch(text, -1)
	if len(commands) < 3 {
		t.Fatalf("docs/deploy.md: got commands %q, want at least 3", commands)
	}
	for _, c := range commands {
		words := strings.Fields(c[1])
		words = words[:min(len(words), 2)]
		help := flags(t, words...)
		for _, flag := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(c[2], -1) {
			if !hasFlag(help, flag[1]) {
				t.Errorf("sous %s: got no flag %s, want it as in docs/deploy.md", c[1], flag[0])
			}
		}
	}
	c := readCompose(t)
	for _, name := range regexp.MustCompile(`\bsous-\d\b`).FindAllString(text, -1) {
		if _, ok := c.Services[name]; !ok {
			t.Errorf("docs/deploy.md: got %s, want a service of docker-compose.yml", name)
		}
	}
}
