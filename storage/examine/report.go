package examine

import (
	"slices"
	"strings"

	"go.uber.org/zap"
)

// Kind is the product of a server.
type Kind string

// The kinds of stores. KindUnknown is a server that speaks the Redis protocol and
// is none of the others, or one that refuses INFO.
const (
	KindKVRocks  Kind = "kvrocks"
	KindRedis    Kind = "redis"
	KindValkey   Kind = "valkey"
	KindEmbedded Kind = "embedded"
	KindUnknown  Kind = "unknown"
)

// Level is the severity of a Finding.
type Level string

// The levels of findings. A failure is a setting under which accepted work is
// lost or the platform does not function; a warning is a risk, or a setting that
// could not be examined.
const (
	LevelOK      Level = "ok"
	LevelWarning Level = "warning"
	LevelFailure Level = "failure"
)

// Finding is the result of one check of the store. Findings are comparable, so that merge
// recognizes equal ones.
type Finding struct {
	// Name of the check, one of the Check constants.
	Name  string
	Level Level
	// Text is one sentence, without a full stop, that names the value found.
	Text string
	// Remedy is the action to take, in the imperative; "" where Level is LevelOK.
	Remedy string
	// Server is the address of the server, where the store has several and they
	// differ; else "".
	Server string
}

// The names of the checks.
const (
	CheckVersion     = "version"
	CheckSettings    = "settings" // CONFIG GET is refused
	CheckPersistence = "persistence"
	CheckPowerLoss   = "power loss"
	CheckEviction    = "eviction"
	CheckScripts     = "scripts"
	CheckCursors     = "cursors"
	CheckProtocol    = "protocol"
	CheckClock       = "clock"
)

// Report describes the servers of a store, and how their settings meet the requirements of
// docs/storage.md.
type Report struct {
	Kind Kind
	// Version is the server's own, "" where it is not known; of servers that differ,
	// the first one's in the order of their addresses.
	Version  string
	Findings []Finding
	// Skew is the difference of the clocks; zero for the embedded store and for a
	// server that refuses TIME.
	Skew Skew
}

// Problems returns the findings that are not LevelOK.
func (r Report) Problems() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Level == LevelOK })
}

// Log writes one line with the store's kind and version, and a warning for each of
// the report's problems.
func (r Report) Log(logger *zap.Logger) {
	logger.Info("store", zap.String("kind", string(r.Kind)), zap.String("version", r.Version), zap.Duration("clock_ahead", r.Skew.Ahead))
	for _, f := range r.Problems() {
		logger.Warn(f.Text, f.fields()...)
	}
}

// fields returns the fields of a log line about f, besides its text.
func (f Finding) fields() []zap.Field {
	fields := []zap.Field{zap.String("check", f.Name), zap.String("severity", string(f.Level))}
	if f.Remedy != "" {
		fields = append(fields, zap.String("remedy", f.Remedy))
	}
	if f.Server != "" {
		fields = append(fields, zap.String("server", f.Server))
	}
	return fields
}

// serverReport is the result for one server of the store.
type serverReport struct {
	addr     string
	kind     Kind
	version  string
	findings []Finding
}

// merge makes one list of findings of all servers, in the order of checkOrder. A finding that
// all servers share appears once; others carry their server's address. For three masters of
// which one has appendonly no:
//
//	version      redis 7.2.4
//	persistence  10.0.0.1:6379  appendonly is "yes": …
//	persistence  10.0.0.2:6379  appendonly is "no" and save is "": …
//	persistence  10.0.0.3:6379  appendonly is "yes": …
func merge(servers []serverReport) []Finding {
	var merged []Finding
	seen := map[Finding]int{}
	for _, server := range servers {
		for _, f := range server.findings {
			seen[f]++
		}
	}
	for i, server := range servers {
		for _, f := range server.findings {
			shared := seen[f] == len(servers)
			if shared && i > 0 {
				continue
			}
			if !shared {
				f.Server = server.addr
			}
			merged = append(merged, f)
		}
	}
	slices.SortStableFunc(merged, func(a, b Finding) int { return checkOrder(a.Name) - checkOrder(b.Name) })
	return merged
}

// checkOrder returns the position of a check in a report: version, settings, then the clock.
func checkOrder(name string) int {
	return slices.Index([]string{
		CheckVersion, CheckSettings, CheckPersistence, CheckPowerLoss, CheckEviction, CheckScripts, CheckCursors, CheckProtocol, CheckClock,
	}, name)
}

// identify returns the server's kind and version from the text of INFO server.
// KVRocks, Valkey and Dragonfly report a redis_version, too: that of the Redis that
// they are compatible with.
func identify(info string) (Kind, string) {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	for _, known := range []struct {
		field string
		kind  Kind
	}{
		{"kvrocks_version", KindKVRocks},
		{"valkey_version", KindValkey},
		{"dragonfly_version", KindUnknown},
		{"redis_version", KindRedis},
	} {
		if v := fields[known.field]; v != "" {
			return known.kind, v
		}
	}
	return KindUnknown, ""
}
