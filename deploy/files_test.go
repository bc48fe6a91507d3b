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

// lines are those of a file that are not empty and no comments.
func lines(t *testing.T, file string) (out []string) {
	t.Helper()
	for line := range strings.Lines(read(t, file)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// option is a setting of kvrocks.conf.
func option(t *testing.T, name string) string {
	t.Helper()
	for _, line := range lines(t, "kvrocks.conf") {
		if key, value, _ := strings.Cut(line, " "); key == name {
			return value
		}
	}
	t.Fatalf("kvrocks.conf has no %s", name)
	return ""
}

// directive is a duration in the Caddyfile.
func directive(t *testing.T, name string) time.Duration {
	t.Helper()
	for _, line := range lines(t, "Caddyfile") {
		if key, value, _ := strings.Cut(line, " "); key == name {
			d, err := time.ParseDuration(value)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
	}
	t.Fatalf("the Caddyfile has no %s", name)
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
		t.Errorf("the Caddyfile has no %q", proxied)
	}
	for _, variable := range regexp.MustCompile(`\{\$([A-Z_]+)`).FindAllStringSubmatch(text, -1) {
		if _, ok := c.Services["proxy"].Environment[variable[1]]; !ok {
			t.Errorf("docker-compose.yml does not set %s", variable[1])
		}
	}
	if c.Services["proxy"].Stop <= directive(t, "grace_period") {
		t.Errorf("the proxy is killed after %s, and may take %s", c.Services["proxy"].Stop, directive(t, "grace_period"))
	}
	route := regexp.MustCompile(`health_uri (\S+)`).FindStringSubmatch(text)
	server := soustest.Start(t)
	response, err := http.Get(server.URL + route[1])
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("a ready server answers %s with %s", route[1], response.Status)
	}
}

// kvrocksOptions are names that KVRocks knows (src/config/config.cc), of which it
// ignores others silently.
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
			t.Errorf("KVRocks does not know %q, or twice", line)
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

// kvrocks.conf has every setting that docs/storage.md lists, with the required value.
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
	if from := regexp.MustCompile(`FROM golang:(\d+\.\d+)\.\d+ AS build`).FindStringSubmatch(text); from == nil || from[1] != module[1] {
		t.Errorf("it builds with %q, and go.mod wants Go %s", from, module[1])
	}
	makefile := read(t, "../Makefile")
	for _, want := range []string{"\nbuild:", "-o bin/sous ", "$(VERSION)"} {
		if !strings.Contains(makefile, want) {
			t.Errorf("the Makefile has no %q, which the image is made by", want)
		}
	}
	for _, want := range []string{
		`make build VERSION="$VERSION"`, "COPY --from=build /src/bin/sous /sous", `ENTRYPOINT ["/sous"]`, "USER 65532:65532",
		"ca-certificates.crt /etc/ssl/certs/ca-certificates.crt",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the Dockerfile has no %q", want)
		}
	}
	c := readCompose(t)
	for _, name := range c.replicas() {
		listen := c.Services[name].Environment["SOUS_LISTEN"]
		health := regexp.MustCompile(`HEALTHCHECK .*CMD \["(\S+)", "(\S+)"\]`).FindStringSubmatch(text)
		checkHealth(t, "Dockerfile", health[1:], listen)
		if _, port, _ := strings.Cut(listen, ":"); !strings.Contains(text, "EXPOSE "+port) {
			t.Errorf("it does not expose %s", port)
		}
	}
}

// What the build needs is not kept from it.
func TestDockerignore(t *testing.T) {
	t.Parallel()
	ignored := lines(t, "Dockerfile.dockerignore")
	if ignored[0] != "*" {
		t.Fatal("it does not begin by leaving everything out")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		`{{if .Module}}{{if .Module.Main}}{{.Dir}}{{range .EmbedFiles}} {{.}}{{end}}{{end}}{{end}}`, "./cmd/sous", "./invoker/sandbox/childmain")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	needed := []string{"Makefile", "go.mod", "go.sum"}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		dir, err := filepath.Rel(root, fields[0])
		if err != nil {
			t.Fatal(err)
		}
		needed = append(needed, strings.Split(dir, string(filepath.Separator))[0])
		for _, file := range fields[1:] {
			if strings.Contains(file, "testdata") || strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s/%s is embedded, and left out", dir, file)
			}
		}
	}
	slices.Sort(needed)
	needed = slices.Compact(needed)
	for _, name := range needed {
		if !slices.Contains(ignored, "!"+name) {
			t.Errorf("the build needs %s, which is left out", name)
		}
	}
	for _, line := range ignored {
		if name, ok := strings.CutPrefix(line, "!"); ok && !slices.Contains(needed, name) {
			t.Errorf("the build does not need %s", name)
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
		t.Fatalf("it runs %q", command)
	}
	// An unknown flag is an error also before --help.
	flags(t, command[1:]...)
	stop, err := time.ParseDuration(unit["TimeoutStopSec"])
	if need := 5*time.Second + 30*time.Second + closeTimeout(t); err != nil || stop <= need {
		t.Errorf("it is killed after %s, and may take %s (%v)", stop, need, err)
	}
	for key, want := range map[string]string{
		"KillMode": "mixed", "OOMPolicy": "continue", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "DynamicUser": "yes",
		"RestrictNamespaces": "user net",
	} {
		if unit[key] != want {
			t.Errorf("%s is %q, want %q", key, unit[key], want)
		}
	}
	if tool, err := exec.LookPath("systemd-analyze"); err == nil {
		// It also wants the program to be there.
		text := strings.ReplaceAll(read(t, "sous.service"), command[0], soustest.Executable(t))
		file := filepath.Join(t.TempDir(), "sous.service")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), tool, "verify", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("systemd-analyze verify: %v\n%s", err, out)
		}
	}
}

// Commands, files and settings that docs/deploy.md names exist.
func TestDocument(t *testing.T) {
	t.Parallel()
	text := read(t, "../docs/deploy.md")
	help := flags(t, "serve")
	for _, name := range regexp.MustCompile("SOUS_[A-Z_]+[A-Z]").FindAllString(text, -1) {
		flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "SOUS_")), "_", "-")
		if !hasFlag(help, flag) && name != "SOUS_KEY" && name != "SOUS_URL" {
			t.Errorf("%s is no setting", name)
		}
	}
	for _, found := range regexp.MustCompile(`deploy/[A-Za-z.-]+[a-z]`).FindAllString(text, -1) {
		if _, err := os.Stat(filepath.Join("..", found)); err != nil {
			t.Error(err)
		}
	}
	commands := regexp.MustCompile(`(?m)^ {4}.*?(?:\bsous|sous-1) ((?:health|keys|doctor|fn|secret|serve|version)\b[a-z ]*)(.*)$`).FindAllStringSubmatch(text, -1)
	if len(commands) < 3 {
		t.Fatalf("it names the commands %q", commands)
	}
	for _, c := range commands {
		words := strings.Fields(c[1])
		words = words[:min(len(words), 2)]
		help := flags(t, words...)
		for _, flag := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(c[2], -1) {
			if !hasFlag(help, flag[1]) {
				t.Errorf("sous %s has no %s", c[1], flag[0])
			}
		}
	}
	c := readCompose(t)
	for _, name := range regexp.MustCompile(`\bsous-\d\b`).FindAllString(text, -1) {
		if _, ok := c.Services[name]; !ok {
			t.Errorf("there is no service %s", name)
		}
	}
}
