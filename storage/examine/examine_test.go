package examine_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/examine"
	"github.com/codesous/sous/storage/storagetest"
)

// verdict is a finding that a report must have: its level, and a part of its text.
type verdict struct {
	name  string
	level examine.Level
	text  string
}

func reportOf(t *testing.T, url string) examine.Report {
	t.Helper()
	r, err := examine.Servers(t.Context(), storagetest.Open(t, storage.Config{URL: url}))
	if err != nil {
		t.Fatalf("examine.Servers: %v", err)
	}
	return r
}

// checkFindings demands the given problems and no others, and every finding of wanted.
func checkFindings(t *testing.T, r examine.Report, wanted ...verdict) {
	t.Helper()
	lost := slices.ContainsFunc(r.Findings, func(f examine.Finding) bool {
		return f.Name == examine.CheckPersistence && f.Level == examine.LevelFailure
	})
	if lost && slices.ContainsFunc(r.Findings, func(f examine.Finding) bool { return f.Name == examine.CheckPowerLoss }) {
		t.Errorf("got a finding about power losses of a server that keeps nothing, want none: %+v", r.Findings)
	}
	for _, w := range wanted {
		i := slices.IndexFunc(r.Findings, func(f examine.Finding) bool { return f.Name == w.name })
		if i < 0 {
			t.Errorf("got findings %+v, want one named %q", r.Findings, w.name)
			continue
		}
		f := r.Findings[i]
		if f.Level != w.level || !strings.Contains(f.Text, w.text) {
			t.Errorf("got %s %s %q, want %s with %q", f.Name, f.Level, f.Text, w.level, w.text)
		}
		if (f.Remedy == "") != (f.Level == examine.LevelOK) {
			t.Errorf("finding %s: got remedy %q at level %s, want a remedy unless the level is ok", f.Name, f.Remedy, f.Level)
		}
	}
	for _, f := range r.Problems() {
		if !slices.ContainsFunc(wanted, func(w verdict) bool { return w.name == f.Name }) {
			t.Errorf("got %s %s %q, want no such problem", f.Name, f.Level, f.Text)
		}
	}
}

// kvrocksChecks are the checks of a KVRocks of that version. Releases before 2.14 have no setting
// of scripts: their version is the problem.
func kvrocksChecks(version string) []string {
	checks := []string{
		examine.CheckVersion, examine.CheckPersistence, examine.CheckPowerLoss, examine.CheckCursors, examine.CheckProtocol, examine.CheckClock,
	}
	minor, err := strconv.Atoi(strings.Split(strings.TrimPrefix(version, "2."), ".")[0])
	if err == nil && minor < 14 {
		return checks
	}
	return append(checks, examine.CheckScripts)
}

// A real KVRocks, with the settings of deploy/kvrocks.conf.
func TestExamineKVRocks(t *testing.T) {
	t.Parallel()
	if !storagetest.OnKVRocks() {
		t.Skip("the tests' store server is not KVRocks; TestExamineRecordedServers has its answers")
	}
	r := reportOf(t, storagetest.Redis(t).URL)
	if r.Kind != examine.KindKVRocks || r.Version == "" {
		t.Errorf("got kind %q, version %q, want kvrocks and its version", r.Kind, r.Version)
	}
	for _, name := range kvrocksChecks(r.Version) {
		i := slices.IndexFunc(r.Findings, func(f examine.Finding) bool { return f.Name == name })
		switch {
		case i < 0:
			t.Errorf("got findings %+v, want %q among them", r.Findings, name)
		case r.Findings[i].Level == examine.LevelOK:
		case name == examine.CheckVersion || name == examine.CheckScripts: // one built between releases, or an old one
		default:
			t.Errorf("got %s %s %q, want ok", name, r.Findings[i].Level, r.Findings[i].Text)
		}
	}
}

func TestExamineRedis(t *testing.T) {
	t.Parallel()
	if storagetest.OnKVRocks() {
		t.Skip("the tests' store server has no settings of redis-server")
	}
	for name, test := range map[string]struct {
		args []string
		want []verdict
	}{
		"durable": {durable(), []verdict{
			{examine.CheckVersion, examine.LevelOK, "redis "},
			{examine.CheckPersistence, examine.LevelOK, `appendonly is "yes"`},
			{examine.CheckPowerLoss, examine.LevelOK, `appendfsync is "everysec"`},
			{examine.CheckEviction, examine.LevelOK, `"noeviction"`},
			{examine.CheckClock, examine.LevelOK, "the store's clock is"},
		}},
		"fsync always": {durable("--appendfsync", "always"), []verdict{
			{examine.CheckPowerLoss, examine.LevelOK, `appendfsync is "always"`},
		}},
		"fsync never": {durable("--appendfsync", "no"), []verdict{
			{examine.CheckPowerLoss, examine.LevelWarning, `appendfsync is "no"`},
		}},
		"nothing kept": {nil, []verdict{
			{examine.CheckPersistence, examine.LevelFailure, `appendonly is "no" and save is "": a server that ends loses everything`},
		}},
		"snapshots only": {[]string{"--save", "3600 1"}, []verdict{
			{examine.CheckPersistence, examine.LevelFailure, `save is "3600 1": a server that ends loses what was written since`},
		}},
		"evicts": {durable("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"), []verdict{
			{examine.CheckEviction, examine.LevelFailure, `maxmemory-policy is "allkeys-lru": a server that reaches maxmemory (104857600)`},
		}},
		"would evict": {durable("--maxmemory-policy", "volatile-ttl"), []verdict{
			{examine.CheckEviction, examine.LevelFailure, `maxmemory-policy is "volatile-ttl": the server removes records, accepted jobs included, as soon as maxmemory (now 0`},
		}},
		"limited": {durable("--maxmemory", "100mb"), []verdict{
			{examine.CheckEviction, examine.LevelOK, `"noeviction"`},
		}},
		"CONFIG is renamed": {durable("--rename-command", "CONFIG", ""), []verdict{
			{examine.CheckSettings, examine.LevelWarning, "unknown command"},
		}},
		"INFO is forbidden": {limited("-info"), []verdict{
			{examine.CheckVersion, examine.LevelWarning, "INFO is refused (NOPERM"},
		}},
		"CONFIG and TIME are forbidden": {limited("-config", "-time"), []verdict{
			{examine.CheckSettings, examine.LevelWarning, "CONFIG GET is refused (NOPERM"},
			{examine.CheckClock, examine.LevelWarning, "TIME is refused (NOPERM"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storagetest.Redis(t, test.args...).URL
			if slices.Contains(test.args, "limited") {
				url = strings.Replace(url, "redis://", "redis://limited:secret@", 1)
			}
			r := reportOf(t, url)
			if name != "INFO is forbidden" && (r.Kind != examine.KindRedis || r.Version == "") {
				t.Errorf("got kind %q, version %q, want redis and its version", r.Kind, r.Version)
			}
			checkFindings(t, r, test.want...)
		})
	}
}

// durable are the arguments of a redis-server that meets every requirement.
func durable(args ...string) []string { return append([]string{"--appendonly", "yes"}, args...) }

// limited are those of a durable redis-server with a user who may not do everything.
func limited(rules ...string) []string {
	return append(durable("--user", "limited", "on", ">secret", "~*", "&*", "+@all"), rules...)
}

// A cluster's masters are all examined: a finding that they share appears once, others
// name their server.
func TestExamineCluster(t *testing.T) {
	t.Parallel()
	r := reportOf(t, storagetest.Cluster(t))
	want := 4 // version, persistence, eviction, clock
	if storagetest.OnKVRocks() {
		want = len(kvrocksChecks(r.Version))
	}
	if len(r.Findings) != want {
		t.Errorf("got %d findings, want %d: %+v", len(r.Findings), want, r.Findings)
	}
	for _, f := range r.Findings {
		if (f.Server != "") != (f.Name == examine.CheckClock) {
			t.Errorf("finding %s: got server %q, want one for the clock only", f.Name, f.Server)
		}
	}
}

func TestExamineEmbedded(t *testing.T) {
	t.Parallel()
	r, err := examine.Servers(t.Context(), storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())}))
	if err != nil || r.Kind != examine.KindEmbedded || len(r.Findings) > 0 {
		t.Errorf("got %+v, %v, want kind embedded and no findings", r, err)
	}
}

func TestExamineWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	redis := storagetest.Redis(t)
	s := storagetest.Open(t, storage.Config{URL: redis.URL})
	redis.Kill()
	if _, err := examine.Servers(t.Context(), s); api.ErrorCode(err) != api.CodeStoreUnavailable {
		t.Errorf("got %v, want %s", err, api.CodeStoreUnavailable)
	}
}

// Servers that the tests cannot start, by what their INFO and CONFIG GET answer.
const (
	kvrocksInfo = "# Server\r\nversion:2.16.0\r\nkvrocks_version:2.16.0\r\nredis_version:4.0.0\r\ngit_sha1:5fccd57c\r\n" +
		"kvrocks_git_sha1:5fccd57c\r\nredis_mode:standalone\r\nkvrocks_mode:standalone\r\nos:Linux 6.1.0 x86_64\r\n" +
		"gcc_version:12.2.0\r\narch_bits:64\r\nprocess_id:1\r\ntcp_port:6666\r\nuptime_in_seconds:5\r\nuptime_in_days:0\r\n"
	valkeyInfo = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.3\r\nvalkey_release_stage:ga\r\n" +
		"redis_git_sha1:00000000\r\nredis_git_dirty:0\r\nserver_mode:standalone\r\nos:Linux 6.1.0 x86_64\r\narch_bits:64\r\n"
	redisInfo     = "# Server\r\nredis_version:6.2.14\r\nredis_mode:standalone\r\ngcc_version:12.2.0\r\n"
	dragonflyInfo = "# Server\r\nredis_version:7.4.0\r\ndragonfly_version:df-v1.27.1\r\nredis_mode:standalone\r\n"
)

// kvrocksSettings are those of deploy/kvrocks.conf, with changes; "" leaves one out.
func kvrocksSettings(t *testing.T, changes ...string) map[string]string {
	t.Helper()
	conf, err := os.ReadFile("../../deploy/kvrocks.conf")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	settings := map[string]string{}
	for line := range strings.Lines(string(conf)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			settings[name] = value
		}
	}
	return changed(settings, changes)
}

func redisSettings(changes ...string) map[string]string {
	return changed(map[string]string{
		"appendonly": "yes", "appendfsync": "everysec", "save": "", "maxmemory": "0", "maxmemory-policy": "noeviction",
	}, changes)
}

func changed(settings map[string]string, changes []string) map[string]string {
	for i := 0; i < len(changes); i += 2 {
		settings[changes[i]] = changes[i+1]
		if changes[i+1] == "" {
			delete(settings, changes[i])
		}
	}
	return settings
}

// answering starts a server that answers INFO, CONFIG GET of one name, and TIME.
func answering(t *testing.T, info string, settings map[string]string) (url string) {
	t.Helper()
	s, err := server.NewServer("127.0.0.1:0")
	if err != nil {
		t.Fatalf("server.NewServer: %v", err)
	}
	t.Cleanup(s.Close)
	for name, answer := range map[string]server.Cmd{
		"PING": func(c *server.Peer, _ string, _ []string) { c.WriteInline("PONG") },
		"INFO": func(c *server.Peer, _ string, _ []string) { c.WriteBulk(info) },
		"CONFIG": func(c *server.Peer, _ string, args []string) {
			if len(args) != 2 {
				c.WriteError("ERR wrong number of arguments")
				return
			}
			value, ok := settings[args[1]]
			if !ok {
				c.WriteLen(0)
				return
			}
			c.WriteStrings([]string{args[1], value})
		},
		"TIME": func(c *server.Peer, _ string, _ []string) {
			now := time.Now()
			c.WriteStrings([]string{strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond() / 1000)})
		},
	} {
		if err := s.Register(name, answer); err != nil {
			t.Fatalf("Register: %v", err)
		}
	}
	return "redis://" + s.Addr().String()
}

func TestExamineRecordedServers(t *testing.T) {
	t.Parallel()
	older := strings.ReplaceAll(kvrocksInfo, "2.16.0", "2.12.1")
	development := strings.ReplaceAll(kvrocksInfo, "2.16.0", "unstable")
	const stops = "every script stops the whole server"
	for name, test := range map[string]struct {
		info     string
		settings map[string]string
		kind     examine.Kind
		version  string
		want     []verdict
	}{
		"KVRocks": {kvrocksInfo, kvrocksSettings(t), examine.KindKVRocks, "2.16.0", []verdict{
			{examine.CheckVersion, examine.LevelOK, "kvrocks 2.16.0"},
			{examine.CheckPersistence, examine.LevelOK, `disable_wal is "no"`},
			{examine.CheckPowerLoss, examine.LevelOK, `sync is "no": a power loss takes the last writes`},
			{examine.CheckScripts, examine.LevelOK, `lua-strict-key-accessing is "yes"`},
			{examine.CheckCursors, examine.LevelOK, `redis-cursor-compatible is "yes"`},
			{examine.CheckProtocol, examine.LevelOK, `resp3-enabled is "no": sous speaks RESP2`},
		}},
		"KVRocks that syncs and speaks RESP3": {
			kvrocksInfo, kvrocksSettings(t, "rocksdb.write_options.sync", "yes", "resp3-enabled", "yes"), examine.KindKVRocks, "2.16.0", []verdict{
				{examine.CheckPowerLoss, examine.LevelOK, `sync is "yes": writes survive a power loss`},
				{examine.CheckProtocol, examine.LevelOK, `resp3-enabled is "yes"`},
			},
		},
		"KVRocks without a log": {kvrocksInfo, kvrocksSettings(t, "rocksdb.write_options.disable_wal", "yes"), examine.KindKVRocks, "2.16.0", []verdict{
			{examine.CheckPersistence, examine.LevelFailure, `disable_wal is "yes"`},
		}},
		"KVRocks without strict keys": {kvrocksInfo, kvrocksSettings(t, "lua-strict-key-accessing", "no"), examine.KindKVRocks, "2.16.0", []verdict{
			{examine.CheckScripts, examine.LevelWarning, `lua-strict-key-accessing is "no": ` + stops},
		}},
		"KVRocks with other cursors": {kvrocksInfo, kvrocksSettings(t, "redis-cursor-compatible", "no"), examine.KindKVRocks, "2.16.0", []verdict{
			{examine.CheckCursors, examine.LevelFailure, `redis-cursor-compatible is "no"`},
		}},
		"an old KVRocks": {older, kvrocksSettings(t, "lua-strict-key-accessing", ""), examine.KindKVRocks, "2.12.1", []verdict{
			{examine.CheckVersion, examine.LevelWarning, "kvrocks 2.12.1 is older than 2.14: " + stops},
		}},
		"a KVRocks between releases": {development, kvrocksSettings(t, "lua-strict-key-accessing", ""), examine.KindKVRocks, "unstable", []verdict{
			{examine.CheckVersion, examine.LevelWarning, "kvrocks unstable is not a release"},
			{examine.CheckScripts, examine.LevelWarning, "does not know lua-strict-key-accessing: " + stops},
		}},
		"Valkey": {valkeyInfo, redisSettings(), examine.KindValkey, "8.1.3", []verdict{
			{examine.CheckVersion, examine.LevelOK, "valkey 8.1.3"},
			{examine.CheckPersistence, examine.LevelOK, `appendonly is "yes"`},
		}},
		"Valkey that keeps nothing and evicts": {
			valkeyInfo, redisSettings("appendonly", "no", "maxmemory", "1000", "maxmemory-policy", "allkeys-lfu"), examine.KindValkey, "8.1.3", []verdict{
				{examine.CheckPersistence, examine.LevelFailure, `appendonly is "no"`},
				{examine.CheckEviction, examine.LevelFailure, `maxmemory-policy is "allkeys-lfu"`},
			},
		},
		"a Valkey that leaves settings out": {valkeyInfo, redisSettings("appendonly", "", "maxmemory-policy", ""), examine.KindValkey, "8.1.3", []verdict{
			{examine.CheckPersistence, examine.LevelWarning, "does not report appendonly"},
			{examine.CheckEviction, examine.LevelWarning, "does not report maxmemory-policy"},
		}},
		"a Valkey with a setting of its own": {valkeyInfo, redisSettings("appendonly", "sometimes"), examine.KindValkey, "8.1.3", []verdict{
			{examine.CheckPersistence, examine.LevelWarning, `appendonly is "sometimes", which sous does not know`},
		}},
		"an old Redis": {redisInfo, redisSettings(), examine.KindRedis, "6.2.14", []verdict{
			{examine.CheckVersion, examine.LevelFailure, "redis 6.2.14 is older than 7.0"},
		}},
		"another server": {dragonflyInfo, nil, examine.KindUnknown, "df-v1.27.1", []verdict{
			{examine.CheckVersion, examine.LevelWarning, "none of KVRocks, Redis and Valkey"},
		}},
		"a server without a version": {"# Server\r\n", nil, examine.KindUnknown, "", []verdict{
			{examine.CheckVersion, examine.LevelWarning, "none of KVRocks, Redis and Valkey"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := reportOf(t, answering(t, test.info, test.settings))
			if r.Kind != test.kind || r.Version != test.version {
				t.Errorf("got %s %s, want %s %s", r.Kind, r.Version, test.kind, test.version)
			}
			checkFindings(t, r, test.want...)
		})
	}
}

func TestReportIsLogged(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	examine.Report{Kind: examine.KindValkey, Version: "8.1.3", Findings: []examine.Finding{
		{Name: examine.CheckVersion, Level: examine.LevelOK, Text: "valkey 8.1.3"},
		{Name: examine.CheckEviction, Level: examine.LevelFailure, Text: "evicts", Remedy: "stop it", Server: "10.0.0.1:6379"},
		{Name: examine.CheckPowerLoss, Level: examine.LevelWarning, Text: "loses", Remedy: "sync"},
	}}.Log(zap.New(core))
	var got []string
	for _, line := range logs.All() {
		f := line.ContextMap()
		got = append(got, fmt.Sprintf("%s %s %v %v %v %v %v", line.Level, line.Message, f["kind"], f["check"], f["severity"], f["remedy"], f["server"]))
	}
	want := []string{
		"info store valkey <nil> <nil> <nil> <nil>",
		"warn evicts <nil> eviction failure stop it 10.0.0.1:6379",
		"warn loses <nil> power loss warning sync <nil>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
}
