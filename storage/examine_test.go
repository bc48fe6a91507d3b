package storage_test

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
	"github.com/codesous/sous/storage/storagetest"
	"github.com/codesous/sous/storage/storeserver"
)

// verdict is a finding that a report must have: its level, and a part of its text.
type verdict struct {
	name  string
	level storage.Level
	text  string
}

func examine(t *testing.T, url string) storage.Report {
	t.Helper()
	r, err := storagetest.Open(t, storage.Config{URL: url}).Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkFindings demands the given problems and no others, and every finding of wanted.
func checkFindings(t *testing.T, r storage.Report, wanted ...verdict) {
	t.Helper()
	lost := slices.ContainsFunc(r.Findings, func(f storage.Finding) bool {
		return f.Name == storage.CheckPersistence && f.Level == storage.LevelFailure
	})
	if lost && slices.ContainsFunc(r.Findings, func(f storage.Finding) bool { return f.Name == storage.CheckPowerLoss }) {
		t.Errorf("got a finding about power losses of a server that keeps nothing: %+v", r.Findings)
	}
	for _, w := range wanted {
		i := slices.IndexFunc(r.Findings, func(f storage.Finding) bool { return f.Name == w.name })
		if i < 0 {
			t.Errorf("got no finding %q in %+v", w.name, r.Findings)
			continue
		}
		f := r.Findings[i]
		if f.Level != w.level || !strings.Contains(f.Text, w.text) {
			t.Errorf("got %s %s %q, want %s with %q", f.Name, f.Level, f.Text, w.level, w.text)
		}
		if (f.Remedy == "") != (f.Level == storage.LevelOK) {
			t.Errorf("got remedy %q of %s, which is %s", f.Remedy, f.Name, f.Level)
		}
	}
	for _, f := range r.Problems() {
		if !slices.ContainsFunc(wanted, func(w verdict) bool { return w.name == f.Name }) {
			t.Errorf("got %s %s %q, want no such problem", f.Name, f.Level, f.Text)
		}
	}
}

// storeKind is the kind of the server that the tests start.
func storeKind(t *testing.T) storage.Kind {
	t.Helper()
	b, err := storeserver.Find(t.Context(), os.Getenv(storagetest.StoreServerEnv))
	if err != nil {
		t.Fatal(err)
	}
	if b.Kind == storeserver.KVRocks {
		return storage.KindKVRocks
	}
	return storage.KindRedis
}

// A real KVRocks, with the settings of deploy/kvrocks.conf.
func TestExamineKVRocks(t *testing.T) {
	t.Parallel()
	if storeKind(t) != storage.KindKVRocks {
		t.Skip("the tests' store server is not KVRocks; TestExamineRecordedServers has its answers")
	}
	r := examine(t, storagetest.Redis(t).URL)
	if r.Kind != storage.KindKVRocks || r.Version == "" {
		t.Errorf("got kind %q, version %q, want kvrocks and its version", r.Kind, r.Version)
	}
	for _, name := range []string{
		storage.CheckVersion, storage.CheckPersistence, storage.CheckPowerLoss, storage.CheckScripts,
		storage.CheckCursors, storage.CheckProtocol, storage.CheckClock,
	} {
		i := slices.IndexFunc(r.Findings, func(f storage.Finding) bool { return f.Name == name })
		switch {
		case i < 0:
			t.Errorf("got no finding %q in %+v", name, r.Findings)
		case r.Findings[i].Level == storage.LevelOK:
		case name == storage.CheckVersion || name == storage.CheckScripts: // one built between releases, or before 2.14
		default:
			t.Errorf("got %s %s %q, want ok", name, r.Findings[i].Level, r.Findings[i].Text)
		}
	}
}

func TestExamineRedis(t *testing.T) {
	t.Parallel()
	if storeKind(t) != storage.KindRedis {
		t.Skip("the tests' store server has no settings of redis-server")
	}
	for name, test := range map[string]struct {
		args []string
		want []verdict
	}{
		"durable": {durable(), []verdict{
			{storage.CheckVersion, storage.LevelOK, "redis "},
			{storage.CheckPersistence, storage.LevelOK, `appendonly is "yes"`},
			{storage.CheckPowerLoss, storage.LevelOK, `appendfsync is "everysec"`},
			{storage.CheckEviction, storage.LevelOK, `"noeviction"`},
			{storage.CheckClock, storage.LevelOK, "the store's clock is"},
		}},
		"fsync always": {durable("--appendfsync", "always"), []verdict{
			{storage.CheckPowerLoss, storage.LevelOK, `appendfsync is "always"`},
		}},
		"fsync never": {durable("--appendfsync", "no"), []verdict{
			{storage.CheckPowerLoss, storage.LevelWarning, `appendfsync is "no"`},
		}},
		"nothing kept": {nil, []verdict{
			{storage.CheckPersistence, storage.LevelFailure, `appendonly is "no" and save is "": a server that ends loses everything`},
		}},
		"snapshots only": {[]string{"--save", "3600 1"}, []verdict{
			{storage.CheckPersistence, storage.LevelFailure, `save is "3600 1": a server that ends loses what was written since`},
		}},
		"evicts": {durable("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"), []verdict{
			{storage.CheckEviction, storage.LevelFailure, `maxmemory-policy is "allkeys-lru": a server that reaches maxmemory (104857600)`},
		}},
		"would evict": {durable("--maxmemory-policy", "volatile-ttl"), []verdict{
			{storage.CheckEviction, storage.LevelFailure, `maxmemory-policy is "volatile-ttl": the server removes records, accepted jobs included, as soon as maxmemory (now 0`},
		}},
		"limited": {durable("--maxmemory", "100mb"), []verdict{
			{storage.CheckEviction, storage.LevelOK, `"noeviction"`},
		}},
		"CONFIG is renamed": {durable("--rename-command", "CONFIG", ""), []verdict{
			{storage.CheckSettings, storage.LevelWarning, "unknown command"},
		}},
		"INFO is forbidden": {limited("-info"), []verdict{
			{storage.CheckVersion, storage.LevelWarning, "INFO is refused (NOPERM"},
		}},
		"CONFIG and TIME are forbidden": {limited("-config", "-time"), []verdict{
			{storage.CheckSettings, storage.LevelWarning, "CONFIG GET is refused (NOPERM"},
			{storage.CheckClock, storage.LevelWarning, "TIME is refused (NOPERM"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storagetest.Redis(t, test.args...).URL
			if slices.Contains(test.args, "limited") {
				url = strings.Replace(url, "redis://", "redis://limited:secret@", 1)
			}
			r := examine(t, url)
			if name != "INFO is forbidden" && (r.Kind != storage.KindRedis || r.Version == "") {
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
	r := examine(t, storagetest.Cluster(t))
	count := map[storage.Kind]int{
		storage.KindRedis:   4, // version, persistence, eviction, clock
		storage.KindKVRocks: 7, // version, persistence, power loss, scripts, cursors, protocol, clock
	}
	if want := count[storeKind(t)]; len(r.Findings) != want {
		t.Errorf("got %d findings, want %d: %+v", len(r.Findings), want, r.Findings)
	}
	for _, f := range r.Findings {
		if (f.Server != "") != (f.Name == storage.CheckClock) {
			t.Errorf("got %q as the server of finding %s", f.Server, f.Name)
		}
	}
}

func TestExamineEmbedded(t *testing.T) {
	t.Parallel()
	r, err := storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())}).Examine(t.Context())
	if err != nil || r.Kind != storage.KindEmbedded || len(r.Findings) > 0 {
		t.Errorf("got %+v, %v, want kind embedded and no findings", r, err)
	}
}

func TestExamineWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	redis := storagetest.Redis(t)
	s := storagetest.Open(t, storage.Config{URL: redis.URL})
	redis.Kill()
	if _, err := s.Examine(t.Context()); api.ErrorCode(err) != api.CodeStoreUnavailable {
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
	conf, err := os.ReadFile("../deploy/kvrocks.conf")
	if err != nil {
		t.Fatal(err)
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
		if settings[changes[i]] = changes[i+1]; changes[i+1] == "" {
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
		t.Fatal(err)
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
			t.Fatal(err)
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
		kind     storage.Kind
		version  string
		want     []verdict
	}{
		"KVRocks": {kvrocksInfo, kvrocksSettings(t), storage.KindKVRocks, "2.16.0", []verdict{
			{storage.CheckVersion, storage.LevelOK, "kvrocks 2.16.0"},
			{storage.CheckPersistence, storage.LevelOK, `disable_wal is "no"`},
			{storage.CheckPowerLoss, storage.LevelOK, `sync is "no": a power loss takes the last writes`},
			{storage.CheckScripts, storage.LevelOK, `lua-strict-key-accessing is "yes"`},
			{storage.CheckCursors, storage.LevelOK, `redis-cursor-compatible is "yes"`},
			{storage.CheckProtocol, storage.LevelOK, `resp3-enabled is "no": sous speaks RESP2`},
		}},
		"KVRocks that syncs and speaks RESP3": {
			kvrocksInfo, kvrocksSettings(t, "rocksdb.write_options.sync", "yes", "resp3-enabled", "yes"), storage.KindKVRocks, "2.16.0", []verdict{
				{storage.CheckPowerLoss, storage.LevelOK, `sync is "yes": writes survive a power loss`},
				{storage.CheckProtocol, storage.LevelOK, `resp3-enabled is "yes"`},
			},
		},
		"KVRocks without a log": {kvrocksInfo, kvrocksSettings(t, "rocksdb.write_options.disable_wal", "yes"), storage.KindKVRocks, "2.16.0", []verdict{
			{storage.CheckPersistence, storage.LevelFailure, `disable_wal is "yes"`},
		}},
		"KVRocks without strict keys": {kvrocksInfo, kvrocksSettings(t, "lua-strict-key-accessing", "no"), storage.KindKVRocks, "2.16.0", []verdict{
			{storage.CheckScripts, storage.LevelWarning, `lua-strict-key-accessing is "no": ` + stops},
		}},
		"KVRocks with other cursors": {kvrocksInfo, kvrocksSettings(t, "redis-cursor-compatible", "no"), storage.KindKVRocks, "2.16.0", []verdict{
			{storage.CheckCursors, storage.LevelFailure, `redis-cursor-compatible is "no"`},
		}},
		"an old KVRocks": {older, kvrocksSettings(t, "lua-strict-key-accessing", ""), storage.KindKVRocks, "2.12.1", []verdict{
			{storage.CheckVersion, storage.LevelWarning, "kvrocks 2.12.1 is older than 2.14: " + stops},
		}},
		"a KVRocks between releases": {development, kvrocksSettings(t, "lua-strict-key-accessing", ""), storage.KindKVRocks, "unstable", []verdict{
			{storage.CheckVersion, storage.LevelWarning, "kvrocks unstable is not a release"},
			{storage.CheckScripts, storage.LevelWarning, "does not know lua-strict-key-accessing: " + stops},
		}},
		"Valkey": {valkeyInfo, redisSettings(), storage.KindValkey, "8.1.3", []verdict{
			{storage.CheckVersion, storage.LevelOK, "valkey 8.1.3"},
			{storage.CheckPersistence, storage.LevelOK, `appendonly is "yes"`},
		}},
		"Valkey that keeps nothing and evicts": {
			valkeyInfo, redisSettings("appendonly", "no", "maxmemory", "1000", "maxmemory-policy", "allkeys-lfu"), storage.KindValkey, "8.1.3", []verdict{
				{storage.CheckPersistence, storage.LevelFailure, `appendonly is "no"`},
				{storage.CheckEviction, storage.LevelFailure, `maxmemory-policy is "allkeys-lfu"`},
			},
		},
		"a Valkey that leaves settings out": {valkeyInfo, redisSettings("appendonly", "", "maxmemory-policy", ""), storage.KindValkey, "8.1.3", []verdict{
			{storage.CheckPersistence, storage.LevelWarning, "does not report appendonly"},
			{storage.CheckEviction, storage.LevelWarning, "does not report maxmemory-policy"},
		}},
		"a Valkey with a setting of its own": {valkeyInfo, redisSettings("appendonly", "sometimes"), storage.KindValkey, "8.1.3", []verdict{
			{storage.CheckPersistence, storage.LevelWarning, `appendonly is "sometimes", which sous does not know`},
		}},
		"an old Redis": {redisInfo, redisSettings(), storage.KindRedis, "6.2.14", []verdict{
			{storage.CheckVersion, storage.LevelFailure, "redis 6.2.14 is older than 7.0"},
		}},
		"another server": {dragonflyInfo, nil, storage.KindUnknown, "df-v1.27.1", []verdict{
			{storage.CheckVersion, storage.LevelWarning, "none of KVRocks, Redis and Valkey"},
		}},
		"a server without a version": {"# Server\r\n", nil, storage.KindUnknown, "", []verdict{
			{storage.CheckVersion, storage.LevelWarning, "none of KVRocks, Redis and Valkey"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := examine(t, answering(t, test.info, test.settings))
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
	storage.Report{Kind: storage.KindValkey, Version: "8.1.3", Findings: []storage.Finding{
		{Name: storage.CheckVersion, Level: storage.LevelOK, Text: "valkey 8.1.3"},
		{Name: storage.CheckEviction, Level: storage.LevelFailure, Text: "evicts", Remedy: "stop it", Server: "10.0.0.1:6379"},
		{Name: storage.CheckPowerLoss, Level: storage.LevelWarning, Text: "loses", Remedy: "sync"},
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
		t.Error(diff)
	}
}
