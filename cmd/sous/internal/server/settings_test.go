package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// serverFlags are those of serve, parsed from args.
func serverFlags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	RegisterServe(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return flags
}

// These set the process's environment and folder, so they run one by one.

func TestSettingsFromEverySource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sous.yaml")
	content := "sandbox-max: 7\nsandbox-spares: 3\ndrain-timeout: 5s\nroles: [api, scheduler]\nlog-level: warn\negress-allow: 10.1.2.3/8\nactivation-retention: [36h, t_acme01=90d]\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	t.Setenv("SOUS_CONFIG", path)
	t.Setenv("SOUS_SANDBOX_SPARES", "4")
	t.Setenv("SOUS_LOG_LEVEL", "error")
	t.Setenv("SOUS_TRACE_ENDPOINT", "http://collector:4318")
	t.Setenv("SOUS_TRACE_SAMPLE", "0.25")
	t.Setenv("SOUS_CLIENT_READ_RATE", "3000")
	t.Setenv("SOUS_MIRROR_MAX_BYTES", "8GiB")
	t.Setenv("SOUS_STORE", "redis://env")
	t.Setenv("SOUS_SERVICE_HOST", "10.0.0.1") // Kubernetes sets it for a service named sous
	got, err := loadSettings(serverFlags(t, "--log-level", "debug", "--sandbox-idle-timeout", "1m"))
	if err != nil {
		t.Fatalf("loadSettings: %v", err)
	}
	want := settings{
		Listen: defaultListen, Auth: authKeys, Store: "redis://env", Roles: []string{"api", "scheduler"}, DrainTimeout: 5 * time.Second,
		LogLevel: "debug", LogFormat: "json", EgressAllow: []string{"10.1.2.3/8"},
		Trace: traceSettings{Endpoint: "http://collector:4318", Sample: 0.25}, SandboxMax: 7, SandboxSpares: 4, SandboxIdleTimeout: time.Minute, SandboxCGroups: "auto",
		Network:   networkSettings{ReadRate: 3000, WriteRate: 1000, QueueFetches: 64, StreamFrames: 2048, StreamRate: 500, StreamErrors: 10},
		Documents: documentSettings{NamespaceRecords: 10_000, NamespaceBytes: 64 << 20, TenantRecords: 100_000, TenantBytes: 640 << 20},
		Mirror:    mirrorSettings{MaxBytes: "8GiB", MinFree: "1GiB"},
		Retention: retentionSettings{Activations: []string{"36h", "t_acme01=90d"}, Jobs: []string{"7d"}, Audit: []string{"90d"}}, TenantLimits: []string{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	invoker, err := got.invokerConfig()
	if err != nil || len(invoker.EgressAllow) != 1 || invoker.EgressAllow[0].String() != "10.0.0.0/8" {
		t.Errorf("EgressAllow = %v, %v, want [10.0.0.0/8]", invoker.EgressAllow, err)
	}
}

func TestListsInVariablesMayHoldBlanks(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("SOUS_ROLES", "api, scheduler")
	got, err := loadSettings(serverFlags(t))
	if err != nil {
		t.Fatalf("loadSettings: %v", err)
	}
	if diff := cmp.Diff([]string{"api", "scheduler"}, got.Roles); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
}

func TestSettingsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	tests := map[string][]string{
		"only loopback":           {"--auth", "off", "--listen", "10.0.0.1:80"},
		"unknown role":            {"--roles", "api,cook"},
		"name at least one":       {"--roles", ""},
		"is not from 0 to 1":      {"--trace-sample", "1.5"},
		"NaN is not":              {"--trace-sample", "NaN"},
		"want http://HOST:PORT":   {"--trace-endpoint", "collector:4318"},
		"not a URL":               {"--trace-endpoint", "http://user:s3cret@[collector"},
		"put credentials into":    {"--trace-endpoint", "http://user:s3cret@collector"},
		"no query":                {"--trace-endpoint", "http://collector/?token=1"},
		"drain-timeout":           {"--drain-timeout", "-1s"},
		"storage quotas":          {"--storage-tenant-bytes", "-1"},
		"storage-rate":            {"--storage-rate", "NaN"},
		"storage-token-file":      {"--storage-token-file", "absent"},
		"cannot be negative":      {"--sandbox-spares", "-2"},
		"auto, on or off":         {"--sandbox-cgroups", "yes"},
		"up to 33 percent":        {"--sandbox-reserve", "50"},
		"the unit is MiB":         {"--sandbox-memory-budget", "1099511627776"},
		"egress-allow":            {"--egress-allow", "10.0.0.1"},
		"function-domain \"Apps":  {"--function-domain", "Apps.example.com"},
		"function-domain \"apps":  {"--function-domain", "apps.example.com:443"},
		"function-domain \"10":    {"--function-domain", "10.0.0.1"},
		"function-domain \".apps": {"--function-domain", ".apps.example.com"},
		"reserved-domains \"A":    {"--reserved-domains", "example.com,A.example.com"},
		"domain-resolver":         {"--domain-resolver", "10.0.0.2"},
		"trusted-proxies":         {"--trusted-proxies", "10.0.0.1"},
		"memory-limit":            {"--memory-limit", "64"},
		"body-budget":             {"--body-budget", "1"},
		"mirror-max-bytes \"10x":  {"--mirror-max-bytes", "10x"},
		"at least 64MiB":          {"--mirror-max-bytes", "1MiB"},
		"mirror-min-free \"-1":    {"--mirror-min-free", "-1"},
		"log-level":               {"--log-level", "loud"},
		`log-format "xml"`:        {"--log-format", "xml"},
		"no such file":            {"--config", "absent.yaml"},
		"only loopback addresses": {"--auth", "off", "--listen", "[::]:80"},
		`listen "10.0.0.1"`:       {"--listen", "10.0.0.1"},
		`admin-listen "9090"`:     {"--admin-listen", "9090"},
		`auth "oidc"`:             {"--auth", "oidc"},
		`auth ""`:                 {"--auth", ""},
	}
	for want, args := range tests {
		if _, err := loadSettings(serverFlags(t, args...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", args, err, want)
		}
	}
}

func TestLoopback(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"127.0.0.1:8080": true, "127.9.9.9:1": true, "localhost:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true,
		":8080": false, "0.0.0.0:1": false, "[::]:1": false, "192.168.1.1:1": false, "localhost.example.com:1": false,
		"127.0.0.1": false, "": false, "127.1:1": false,
	}
	for listen, want := range tests {
		if err := checkLoopback("listen", listen); (err == nil) != want {
			t.Errorf("checkLoopback(%q) = %v, want allowed: %v", listen, err, want)
		}
	}
}

// With keys any address will do; which one is the operator's decision.
func TestListenAnywhereWithKeys(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, listen := range []string{":8080", "0.0.0.0:1", "[::]:80", "192.168.1.1:1", "sous.example.com:80"} {
		if _, err := loadSettings(serverFlags(t, "--listen", listen, "--admin-listen", listen)); err != nil {
			t.Errorf("loadSettings with --auth keys --listen %s: got error %v, want none", listen, err)
		}
	}
}
