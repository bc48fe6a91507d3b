package server

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"

	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/invoker/sandbox"
)

// settings are the settings of a server. The koanf name of a field is its flag, its key in
// the configuration file and, in upper case with the prefix SOUS_, its variable. The defaults
// are those of the flags; docs/configuration.md describes every setting.
type settings struct {
	Listen       string        `koanf:"listen"`
	AdminListen  string        `koanf:"admin-listen"` // "": no admin server
	Auth         string        `koanf:"auth"`         // authOff or authKeys
	DataDir      string        `koanf:"data-dir"`     // dev only
	Store        string        `koanf:"store"`        // "": the embedded store, for dev only
	StoreFile    string        `koanf:"store-file"`   // has the value of Store
	Roles        []string      `koanf:"roles"`        // at least one of allRoles
	DrainTimeout time.Duration `koanf:"drain-timeout"`
	LogLevel     string        `koanf:"log-level"`
	LogFormat    string        `koanf:"log-format"`
	EgressAllow  []string      `koanf:"egress-allow"`     // CIDR; nil: public addresses only
	CadenceAddr  string        `koanf:"cadence-addr"`     // "": no Cadence
	SecretsKey   string        `koanf:"secrets-key-file"` // "": secrets can be neither written nor read

	Mirror    mirrorSettings    `koanf:",squash"`
	Network   networkSettings   `koanf:",squash"`
	Trace     traceSettings     `koanf:",squash"`
	Documents documentSettings  `koanf:",squash"`
	Retention retentionSettings `koanf:",squash"`

	TenantLimits []string `koanf:"tenant-limits"` // NAME=VALUE; nil: the defaults of quota.DefaultTenantLimits

	// 0 selects the default, which sandbox.Config documents.
	SandboxMax          int           `koanf:"sandbox-max"`
	SandboxMemoryBudget int64         `koanf:"sandbox-memory-budget"` // MiB
	SandboxReserve      int           `koanf:"sandbox-reserve"`       // percent; -1: none
	SandboxSpares       int           `koanf:"sandbox-spares"`        // -1: none
	SandboxIdleTimeout  time.Duration `koanf:"sandbox-idle-timeout"`
	SandboxCGroups      string        `koanf:"sandbox-cgroups"`

	StoreInArgs bool `koanf:"-"` // the flag --store has a password

	// Of Dev only, and no settings of users.
	Observer   invoker.Observer `koanf:"-"`
	ShowErrors bool             `koanf:"-"`
	// Unconfined is of WithTryout only: no browser reaches its server.
	Unconfined bool `koanf:"-"`
}

// The roles of a replica. Together the replicas of an installation need all roles but
// roleCadence and roleMirror; each role may be on any number of them. A replica searches its own mirror
// only.
const (
	roleAPI       = "api"       // the REST API, the functions' endpoints, and sandboxes for them
	roleInvoker   = "invoker"   // asynchronous invocations, in sandboxes
	roleScheduler = "scheduler" // schedules, maintenance of queues, repairs after crashes; no sandboxes
	roleCadence   = "cadence"   // activities for the worker bindings, in sandboxes
	roleMirror    = "mirror"    // the view of jobs and activations for searches, in a file
)

var allRoles = []string{roleAPI, roleInvoker, roleScheduler, roleCadence, roleMirror}

// The values of --log-format.
const (
	logJSON    = "json"
	logConsole = "console"
)

const (
	defaultListen       = "127.0.0.1:8080"
	defaultDrainTimeout = 30 * time.Second
)

// StoreHelp describes the value of a --store flag.
const StoreHelp = `a Redis-protocol server (KVRocks, Redis 7, Valkey):
redis://[user:password@]host:port[/db], rediss://… with TLS, unix:///path,
redis-cluster://host:port,host:port,… or redis-sentinel://host:port,…/master`

// RegisterServe adds the settings of sous serve to flags. The names and defaults of the flags
// are those of the settings: see loadSettings.
func RegisterServe(flags *pflag.FlagSet) {
	registerShared(flags, logJSON, authKeys)
	registerStore(flags, StoreHelp)
	flags.StringSlice("roles", allRoles, "roles of this replica, any of "+strings.Join(allRoles, ","))
}

// RegisterDev adds the settings of sous dev to flags. It accepts roles, hidden, so that dev
// can read the configuration file of a serve; Dev ignores them.
func RegisterDev(flags *pflag.FlagSet) {
	registerShared(flags, logConsole, authOff)
	flags.String("data-dir", "", "folder of the embedded store (default: ./.sous if it has one, else $XDG_STATE_HOME/sous, which is ~/.local/state/sous)")
	registerStore(flags, "use this server instead of the embedded store: "+StoreHelp)
	flags.StringSlice("roles", allRoles, "the work of this process")
	flags.Lookup("roles").Hidden = true
}

// registerShared adds the settings that dev and serve share.
func registerShared(flags *pflag.FlagSet, logFormat, auth string) {
	flags.String("config", "", "YAML file of settings (SOUS_CONFIG; default ./"+defaultConfigFile+" where it exists)")
	flags.String("listen", defaultListen, "address to answer on; port 0 takes a free one")
	registerAuth(flags, auth)
	flags.String("admin-listen", "", "address of /metrics and /debug/pprof, for operators; off by default")
	flags.Duration("drain-timeout", defaultDrainTimeout, "how long requests in progress may take to finish after a signal")
	registerNetwork(flags)
	registerTracing(flags)
	flags.String("log-level", zapcore.InfoLevel.String(), "lowest level that is logged: debug, info, warn or error")
	flags.String("log-format", logFormat, "json, or console for people")
	flags.StringSlice("egress-allow", nil, "private address ranges (CIDR, comma-separated) that functions' fetch may reach, and loopback for this machine; by default none")
	flags.String("cadence-addr", "", "HOST:PORT of a Cadence server's frontend (its gRPC port, 7833 by default), for worker bindings and cs.cadence; by default none")
	registerMirror(flags)
	registerSecrets(flags)
	registerDocuments(flags)
	registerRetention(flags)
	registerQuotas(flags)
	flags.Int("sandbox-max", 0, "largest number of sandbox processes that serve a version, warm or busy (0: 100)")
	flags.Int64("sandbox-memory-budget", 0, "MiB that the sandbox processes which serve a version may use together, each counted as 2.2 times its version's limit (0: half of this machine's memory)")
	flags.Int("sandbox-reserve", 0, "percent of these processes and of their memory that the calls of one tenant leave free for those of others (0: 20, -1: none)")
	flags.Int("sandbox-spares", 0, "unassigned sandbox processes kept ready for cold starts (0: 2, -1: none)")
	flags.String("sandbox-cgroups", sandbox.CGroupsAuto, "a cgroup (v2) for each sandbox: auto, where the server may make them; on, and refuse to start elsewhere; off")
	flags.Duration("sandbox-idle-timeout", 0, "how long a warm sandbox waits for its next call (0: 10m)")
}

// validate refuses settings that no server can run with. It reads the token file of the
// document store; other files and addresses are examined when they are opened.
func (s *settings) validate() error {
	if err := s.validateAuth(); err != nil {
		return err
	}
	if s.AdminListen != "" {
		if err := checkAddress("admin-listen", s.AdminListen); err != nil {
			return err
		}
	}
	if s.CadenceAddr != "" {
		if err := checkAddress("cadence-addr", s.CadenceAddr); err != nil {
			return err
		}
	}
	for _, role := range s.Roles {
		if !slices.Contains(allRoles, role) {
			return fmt.Errorf("roles: unknown role %q; the roles are %s", role, strings.Join(allRoles, ", "))
		}
	}
	if len(s.Roles) == 0 {
		return errors.New("roles: name at least one of " + strings.Join(allRoles, ", "))
	}
	if s.DrainTimeout <= 0 {
		return errors.New("drain-timeout: want more than 0")
	}
	if err := s.Network.validate(); err != nil {
		return err
	}
	if err := s.Trace.validate(); err != nil {
		return err
	}
	if err := s.Documents.validate(); err != nil {
		return err
	}
	if err := s.Retention.validate(); err != nil {
		return err
	}
	if _, err := s.tenantLimits(); err != nil {
		return err
	}
	if _, err := s.mirrorConfig(); err != nil {
		return err
	}
	if err := s.validateSandboxes(); err != nil {
		return err
	}
	if _, err := s.egress(); err != nil {
		return err
	}
	if _, err := zapcore.ParseLevel(s.LogLevel); err != nil {
		return fmt.Errorf("log-level: %w", err)
	}
	if s.LogFormat != logJSON && s.LogFormat != logConsole {
		return fmt.Errorf("log-format %q: want %s or %s", s.LogFormat, logJSON, logConsole)
	}
	return nil
}

// validateSandboxes refuses settings that no pool can run with.
func (s *settings) validateSandboxes() error {
	if s.SandboxMax < 0 || s.SandboxMemoryBudget < 0 || s.SandboxSpares < -1 || s.SandboxIdleTimeout < 0 {
		return errors.New("sandbox settings cannot be negative (but for -1 spares)")
	}
	if !slices.Contains([]string{"", sandbox.CGroupsAuto, sandbox.CGroupsOn, sandbox.CGroupsOff}, s.SandboxCGroups) {
		return fmt.Errorf("sandbox-cgroups %q: want %s, %s or %s", s.SandboxCGroups, sandbox.CGroupsAuto, sandbox.CGroupsOn, sandbox.CGroupsOff)
	}
	if s.SandboxReserve < -1 || s.SandboxReserve > sandbox.MaxReservePercent {
		return fmt.Errorf("sandbox-reserve: got %d, want up to %d percent, or -1 for none", s.SandboxReserve, sandbox.MaxReservePercent)
	}
	if s.SandboxMemoryBudget > maxBudgetMiB {
		return fmt.Errorf("sandbox-memory-budget: %d MiB is more than any machine has; the unit is MiB", s.SandboxMemoryBudget)
	}
	return nil
}

// maxBudgetMiB is the largest memory budget, 64 TiB: a larger number was meant in bytes.
const maxBudgetMiB = 64 << 20

// has reports whether the replica has role.
func (s *settings) has(role string) bool { return slices.Contains(s.Roles, role) }

// egressLoopback is the value of egress-allow for the addresses of this machine.
const egressLoopback = "loopback"

// egress returns the private address ranges that functions may reach. 10.1.2.3/8 is accepted
// and means 10.0.0.0/8.
func (s *settings) egress() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, cidr := range s.EgressAllow {
		if cidr == egressLoopback {
			out = append(out, netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
			continue
		}
		p, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("egress-allow %q: want a range such as 10.20.0.0/16, or loopback for this machine", cidr)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// sandboxConfig returns the configuration of the pool of sandboxes.
func (s *settings) sandboxConfig() sandbox.Config {
	return sandbox.Config{
		MaxProcesses:      s.SandboxMax,
		MemoryBudgetBytes: s.SandboxMemoryBudget << 20,
		ReservePercent:    s.SandboxReserve,
		Spares:            s.SandboxSpares,
		IdleTimeout:       s.SandboxIdleTimeout,
		CGroups:           s.SandboxCGroups,
	}
}

// invokerConfig returns the configuration of the engine.
func (s *settings) invokerConfig() (invoker.Config, error) {
	allow, err := s.egress()
	return invoker.Config{EgressAllow: allow}, err
}
