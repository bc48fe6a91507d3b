package deploy_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	configfile "github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"

	"github.com/codesous/sous/cmd/sous/soustest"
)

// service holds the fields of a service in docker-compose.yml that the tests check.
type service struct {
	Image       string            `koanf:"image"`
	Command     []string          `koanf:"command"`
	Entrypoint  []string          `koanf:"entrypoint"`
	Environment map[string]string `koanf:"environment"`
	Volumes     []string          `koanf:"volumes"`
	Tmpfs       []string          `koanf:"tmpfs"`
	Networks    []string          `koanf:"networks"`
	Ports       []string          `koanf:"ports"`
	Stop        time.Duration     `koanf:"stop_grace_period"`
	Init        bool              `koanf:"init"`
	ReadOnly    bool              `koanf:"read_only"`
	CapDrop     []string          `koanf:"cap_drop"`
	CapAdd      []string          `koanf:"cap_add"`
	User        string            `koanf:"user"`
	Security    []string          `koanf:"security_opt"`
	Restart     string            `koanf:"restart"`
	Secrets     []string          `koanf:"secrets"`
	Memory      string            `koanf:"mem_limit"`
	Build       struct {
		Context    string            `koanf:"context"`
		Dockerfile string            `koanf:"dockerfile"`
		Args       map[string]string `koanf:"args"`
	} `koanf:"build"`
	Health struct {
		Test []string `koanf:"test"`
	} `koanf:"healthcheck"`
	DependsOn map[string]any `koanf:"depends_on"`
}

// compose holds the fields of docker-compose.yml that the tests check.
type compose struct {
	Services map[string]service `koanf:"services"`
	Networks map[string]struct {
		Internal bool `koanf:"internal"`
	} `koanf:"networks"`
	Volumes map[string]any `koanf:"volumes"`
	Secrets map[string]struct {
		File string `koanf:"file"`
	} `koanf:"secrets"`
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	k := koanf.New("\x00") // a separator that no key of these files contains
	if err := k.Load(configfile.Provider(name), yaml.Parser()); err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	if err := k.Unmarshal("", into); err != nil {
		t.Fatalf("decode %s: %v", name, err)
	}
}

func readCompose(t *testing.T) compose {
	t.Helper()
	var c compose
	readYAML(t, "docker-compose.yml", &c)
	if len(c.Services) < 4 {
		t.Fatalf("docker-compose.yml: got services %v, want at least 4", c.Services)
	}
	return c
}

// replicas returns the names of the services that run sous, sorted.
func (c compose) replicas() (names []string) {
	for name, s := range c.Services {
		if s.Build.Dockerfile != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	return string(text)
}

// sous runs the built program and returns what it printed.
func sous(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), soustest.Executable(t), args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...) // without the variables of the test process
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// flags returns the help text of a command, which lists its flags.
func flags(t *testing.T, command ...string) string {
	t.Helper()
	help, err := sous(t, nil, append(command, "--help")...)
	if err != nil {
		t.Fatalf("sous %v: %v\n%s", command, err, help)
	}
	return help
}

// hasFlag reports whether help lists the flag, and does not only mention it.
func hasFlag(help, name string) bool {
	return regexp.MustCompile(`(?m)^ +(-\w, )?--` + regexp.QuoteMeta(name) + " ").MatchString(help)
}

// checkSettings checks that each variable is a setting of sous serve and that the
// server accepts the values: it starts and fails only because no store answers.
func checkSettings(t *testing.T, place string, variables map[string]string) {
	t.Helper()
	help := flags(t, "serve")
	var env []string
	for name, value := range variables {
		flag, ok := strings.CutPrefix(name, "SOUS_")
		flag = strings.ReplaceAll(strings.ToLower(flag), "_", "-")
		if !ok || !hasFlag(help, flag) {
			t.Errorf("%s: got variable %s, want a setting of sous serve", place, name)
		}
		env = append(env, name+"="+value)
	}
	// Later variables take precedence. Ports of the container may be in use here.
	env = append(env, "SOUS_STORE=redis://127.0.0.1:1", "SOUS_ADMIN_LISTEN=")
	if listen := variables["SOUS_LISTEN"]; listen != "" {
		host, _, err := net.SplitHostPort(listen)
		if err != nil {
			t.Errorf("%s: SOUS_LISTEN %q: %v", place, listen, err)
		}
		env = append(env, "SOUS_LISTEN="+net.JoinHostPort(host, "0"))
	}
	if out, err := sous(t, env, "serve"); err == nil || !strings.Contains(out, "CS_STORE_UNAVAILABLE") {
		t.Errorf("%s: sous serve with these variables: got error %v, want CS_STORE_UNAVAILABLE in\n%s", place, err, out)
	}
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	names := c.replicas()
	if len(names) != 2 {
		t.Fatalf("replicas: got %v, want 2", names)
	}
	for _, name := range names {
		s := c.Services[name]
		checkSettings(t, name, s.Environment)
		if len(s.Command) != 1 || s.Command[0] != "serve" {
			t.Errorf("%s: got command %q, want [serve]", name, s.Command)
		}
		if s.Build.Dockerfile != "deploy/Dockerfile" || s.Build.Context != ".." {
			t.Errorf("%s: got build %+v, want deploy/Dockerfile in ..", name, s.Build)
		}
		for arg := range s.Build.Args {
			if !strings.Contains(read(t, "Dockerfile"), "\nARG "+arg+"=") {
				t.Errorf("Dockerfile: got no argument %s, want it", arg)
			}
		}
		checkHealth(t, name, s.Health.Test[1:], s.Environment["SOUS_LISTEN"])
		store, err := url.Parse(s.Environment["SOUS_STORE"])
		if err != nil || c.Services[store.Hostname()].Image == "" || store.Port() != option(t, "port") {
			t.Errorf("%s: got SOUS_STORE %s and error %v, want the address of a service", name, s.Environment["SOUS_STORE"], err)
		}
		if _, ok := s.DependsOn[store.Hostname()]; !ok {
			t.Errorf("%s: got no dependency on %s, want one", name, store.Hostname())
		}
		if s.Environment["SOUS_AUTH"] != "keys" || len(s.Ports) > 0 {
			t.Errorf("%s: got SOUS_AUTH %q and ports %q, want keys and no ports, so that all requests use a key and the proxy", name, s.Environment["SOUS_AUTH"], s.Ports)
		}
		// TestUsersOfChildren (invoker/sandbox) runs a server with these.
		if want := []string{"SETUID", "SETGID", "KILL", "SETPCAP"}; !slices.Equal(s.CapAdd, want) || s.User != "0:0" {
			t.Errorf("%s: got capabilities %q and user %q, want %q and root, which give sandboxes users of their own", name, s.CapAdd, s.User, want)
		}
		checkTimes(t, name, s)
		mounted := strings.TrimPrefix(s.Environment["SOUS_SECRETS_KEY_FILE"], "/run/secrets/")
		if !slices.Contains(s.Secrets, mounted) || !ignored(t, "deploy/"+strings.TrimPrefix(c.Secrets[mounted].File, "./")) {
			t.Errorf("%s: got key file %q and secrets %q, want it among them and ignored by git", name, mounted, s.Secrets)
		}
		budget, err := strconv.Atoi(s.Environment["SOUS_SANDBOX_MEMORY_BUDGET"])
		if limit := gibibytes(t, s.Memory) << 10; err != nil || budget > limit/2 {
			t.Errorf("%s: got a budget of %d MiB and error %v, want at most half of %d MiB", name, budget, err, limit)
		}
	}
}

// ignored reports whether a file is kept out of commits by its own name.
func ignored(t *testing.T, file string) bool {
	t.Helper()
	return slices.Contains(strings.Split(read(t, "../.gitignore"), "\n"), "/"+file)
}

// checkTimes checks that a replica can shut down in order before it is killed, and
// that the proxy stops using it before it refuses connections.
func checkTimes(t *testing.T, name string, s service) {
	t.Helper()
	delay, err := time.ParseDuration(s.Environment["SOUS_DRAIN_DELAY"])
	if err != nil {
		t.Fatalf("time.ParseDuration: %v", err)
	}
	timeout, err := time.ParseDuration(s.Environment["SOUS_DRAIN_TIMEOUT"])
	if err != nil {
		t.Fatalf("time.ParseDuration: %v", err)
	}
	if need := delay + timeout + closeTimeout(t); s.Stop <= need {
		t.Errorf("%s: got stop_grace_period %s, want more than the %s that a shutdown may take", name, s.Stop, need)
	}
	if notice := directive(t, "health_interval") + directive(t, "health_timeout"); delay <= notice {
		t.Errorf("%s: got drain delay %s, want more than the %s that the proxy may take to notice", name, delay, notice)
	}
}

// closeTimeout is what the server may take after its drain.
func closeTimeout(t *testing.T) time.Duration {
	t.Helper()
	found := regexp.MustCompile(`closeTimeout = (\d+) \* time\.Second`).FindStringSubmatch(read(t, "../cmd/sous/internal/server/listen.go"))
	if found == nil {
		t.Fatal("cmd/sous/internal/server/listen.go has no closeTimeout")
	}
	seconds, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatalf("strconv.Atoi: %v", err)
	}
	return time.Duration(seconds) * time.Second
}

func gibibytes(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSuffix(text, "g"))
	if err != nil {
		t.Fatalf("mem_limit %q: want GiB", text)
	}
	return n
}

// checkHealth checks that the health check runs a command of the image that queries
// the port of listen.
func checkHealth(t *testing.T, place string, test []string, listen string) {
	t.Helper()
	if len(test) < 2 || test[0] != "/sous" {
		t.Errorf("%s: got health check %q, want a command of /sous", place, test)
		return
	}
	help := flags(t, test[1:]...)
	_, port, err := net.SplitHostPort(listen)
	if err != nil || !strings.Contains(help, "default http://127.0.0.1:"+port) {
		t.Errorf("%s: got error %v and help of sous health without port %s, want it as the default in\n%s", place, err, port, help)
	}
}

var pinned = regexp.MustCompile(`^[a-z./]+:v?(\d+)\.(\d+)\.(\d+)(?:@sha256:[0-9a-f]{64})?$`)

func TestServices(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	for name, s := range c.Services {
		version := pinned.FindStringSubmatch(s.Image)
		if s.Build.Dockerfile == "" && version == nil {
			t.Errorf("%s: got image %s, want one with a pinned version", name, s.Image)
		}
		if strings.HasPrefix(s.Image, "apache/kvrocks:") {
			if minor, err := strconv.Atoi(version[2]); version[1] != "2" || err != nil || minor < 14 {
				t.Errorf("%s: got image %s, want 2.14 or later, which has lua-strict-key-accessing", name, s.Image)
			}
			if !slices.Contains(s.Entrypoint, "/etc/kvrocks/kvrocks.conf") || !slices.Contains(s.Volumes, "./kvrocks.conf:/etc/kvrocks/kvrocks.conf:ro") {
				t.Errorf("%s: got entrypoint %q and volumes %q, want them to read kvrocks.conf", name, s.Entrypoint, s.Volumes)
			}
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.Security, "no-new-privileges:true") || s.Memory == "" || s.Restart == "" {
			t.Errorf("%s: got %+v, want a read-only root, no capabilities, no new privileges, a memory limit and a restart policy", name, s)
		}
		for _, volume := range s.Volumes {
			from, _, _ := strings.Cut(volume, ":")
			if _, named := c.Volumes[from]; !named {
				if _, err := os.Stat(from); err != nil {
					t.Errorf("%s mounts %s: got error %v, want a file that exists", name, from, err)
				}
			}
		}
		for _, network := range s.Networks {
			if _, ok := c.Networks[network]; !ok {
				t.Errorf("%s: got network %s, want a declared one", name, network)
			}
		}
		for needed := range s.DependsOn {
			if c.Services[needed].Image == "" || c.Services[needed].Health.Test == nil {
				t.Errorf("%s: got a dependency on the health of %s, want a service with a health check", name, needed)
			}
		}
		for _, port := range s.Ports {
			if !strings.Contains(port, "127.0.0.1:") {
				t.Errorf("%s: got port %s, want 127.0.0.1 by default", name, port)
			}
		}
	}
}

// TestStoreIsAlone checks that the store is only on an internal network, which the
// proxy does not share, and that it can write its files.
func TestStoreIsAlone(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	store := c.Services["kvrocks"]
	if len(store.Networks) != 1 || !c.Networks[store.Networks[0]].Internal || len(store.Ports) > 0 {
		t.Errorf("kvrocks: got networks %q and ports %q, want one internal network and no port", store.Networks, store.Ports)
	}
	if slices.Contains(c.Services["proxy"].Networks, store.Networks[0]) {
		t.Errorf("proxy: got networks %q, want none of the store (%s)", c.Services["proxy"].Networks, store.Networks[0])
	}
	dir := option(t, "dir")
	for _, where := range []string{option(t, "backup-dir"), option(t, "pidfile")} {
		inTmp := slices.Contains(store.Tmpfs, path.Dir(where))
		if !strings.HasPrefix(where, dir+"/") && !inTmp {
			t.Errorf("kvrocks cannot write %s, want a path in %s or %q", where, dir, store.Tmpfs)
		}
	}
	if !slices.ContainsFunc(store.Volumes, func(v string) bool { return strings.HasSuffix(v, ":"+dir) }) {
		t.Errorf("kvrocks: got volumes %q, want one at %s", store.Volumes, dir)
	}
}

// TestScrapeTargets checks that Prometheus scrapes each replica at its admin address.
func TestScrapeTargets(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	var want []string
	for _, name := range c.replicas() {
		_, port, err := net.SplitHostPort(c.Services[name].Environment["SOUS_ADMIN_LISTEN"])
		if err != nil {
			t.Fatalf("net.SplitHostPort: %v", err)
		}
		want = append(want, fmt.Sprintf("%s:%s", name, port))
	}
	var config struct {
		Jobs []struct {
			Static []struct {
				Targets []string `koanf:"targets"`
			} `koanf:"static_configs"`
		} `koanf:"scrape_configs"`
	}
	readYAML(t, "prometheus.yml", &config)
	if got := config.Jobs[0].Static[0].Targets; !slices.Equal(got, want) {
		t.Errorf("scrape targets: got %q, want %q", got, want)
	}
}

// TestReplicasKeepTheirMirrors: the folder of the mirror is on a volume of each replica, and systemd
// makes one for the unit.
func TestReplicasKeepTheirMirrors(t *testing.T) {
	t.Parallel()
	project, seen := readCompose(t), map[string]bool{}
	for _, name := range []string{"sous-1", "sous-2"} {
		service := project.Services[name]
		if len(service.Volumes) != 1 {
			t.Fatalf("%s: got volumes %q, want one", name, service.Volumes)
		}
		volume, dir, _ := strings.Cut(service.Volumes[0], ":")
		if _, declared := project.Volumes[volume]; !declared || seen[volume] || !strings.HasPrefix(service.Environment["SOUS_MIRROR_DIR"], dir+"/") {
			t.Errorf("%s: got volume %q and folder %q, want a volume of its own with the folder", name, service.Volumes[0], service.Environment["SOUS_MIRROR_DIR"])
		}
		seen[volume] = true
	}
	unit, err := os.ReadFile("sous.service")
	if err != nil || !strings.Contains(string(unit), "\nStateDirectory=sous\n") {
		t.Errorf("sous.service: got error %v and no StateDirectory=sous, want it", err)
	}
}
