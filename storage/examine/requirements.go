package examine

import (
	"fmt"
	"strconv"
	"strings"
)

// The settings that docs/storage.md requires, or lets the operator choose.
const (
	settingAppendOnly  = "appendonly"
	settingAppendFsync = "appendfsync"
	settingSave        = "save"
	settingMaxMemory   = "maxmemory"
	settingEviction    = "maxmemory-policy"

	settingStrictKeys = "lua-strict-key-accessing"
	settingCursors    = "redis-cursor-compatible"
	settingRESP3      = "resp3-enabled"
	settingSync       = "rocksdb.write_options.sync"
	settingDisableWAL = "rocksdb.write_options.disable_wal"
)

var redisSettings = []string{settingAppendOnly, settingAppendFsync, settingSave, settingMaxMemory, settingEviction}

// requiredSettings are the settings that are read of each kind of server.
var requiredSettings = map[Kind][]string{
	KindKVRocks: {settingStrictKeys, settingCursors, settingRESP3, settingSync, settingDisableWAL},
	KindRedis:   redisSettings,
	KindValkey:  redisSettings,
}

// minimum is the oldest supported release of each kind of server. KVRocks 2.14 has
// lua-strict-key-accessing, without which a script stops the whole server while it runs.
var minimum = map[Kind]release{
	KindKVRocks: {2, 14},
	KindRedis:   {7, 0},
	KindValkey:  {7, 2},
}

// release is the part of a version that is compared.
type release struct{ major, minor int }

func (r release) String() string { return fmt.Sprintf("%d.%d", r.major, r.minor) }

func (r release) before(o release) bool {
	return r.major < o.major || r.major == o.major && r.minor < o.minor
}

// parseRelease reads the beginning of a version, such as 7.0.15. Builds between
// releases have none.
func parseRelease(version string) (release, bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return release{}, false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return release{}, false
	}
	minor, err := strconv.Atoi(parts[1])
	return release{major, minor}, err == nil
}

// tooOld reports whether version is known to be older than the oldest supported one.
func tooOld(kind Kind, version string) bool {
	r, ok := parseRelease(version)
	return ok && r.before(minimum[kind])
}

// checkVersion checks the release of a server. An old KVRocks works, only slowly; an old Redis
// or Valkey may lack commands.
func checkVersion(kind Kind, version string) Finding {
	name := strings.TrimSpace(string(kind) + " " + version)
	f := Finding{Name: CheckVersion, Level: LevelOK, Text: name}
	_, released := parseRelease(version)
	switch {
	case kind == KindUnknown:
		f.Level = LevelWarning
		f.Text = "the server is none of KVRocks, Redis and Valkey: its settings could not be examined"
		f.Remedy = "use a server that docs/storage.md lists"
	case !released:
		f.Level = LevelWarning
		f.Text = name + " is not a release: its version could not be compared with " + minimum[kind].String()
		f.Remedy = fmt.Sprintf("use a release, %s or later", minimum[kind])
	case !tooOld(kind, version):
	case kind == KindKVRocks:
		f.Level = LevelWarning
		f.Text = fmt.Sprintf("%s is older than %s: every script stops the whole server while it runs", name, minimum[kind])
		f.Remedy = fmt.Sprintf("upgrade to %s or later and set %s yes", minimum[kind], settingStrictKeys)
	default:
		f.Level = LevelFailure
		f.Text = fmt.Sprintf("%s is older than %s, the oldest supported version", name, minimum[kind])
		f.Remedy = fmt.Sprintf("upgrade to %s or later", minimum[kind])
	}
	return f
}

// checkSettings checks the settings that readSettings has read of a server.
func checkSettings(kind Kind, version string, settings map[string]string) []Finding {
	switch kind {
	case KindKVRocks:
		findings := []Finding{checkWAL(settings), checkCursors(settings), checkProtocol(settings)}
		if settings[settingDisableWAL] != "yes" {
			findings = append(findings, checkSync(settings))
		}
		if tooOld(kind, version) {
			return findings // it has no strict keys, as the finding of its version says
		}
		return append(findings, checkStrictKeys(settings))
	case KindRedis, KindValkey:
		findings := []Finding{checkAppendOnly(settings), checkEviction(settings)}
		if settings[settingAppendOnly] == "yes" {
			findings = append(findings, checkAppendFsync(settings))
		}
		return findings
	}
	return nil
}

// settingFinding returns the finding called name about the value of a setting: the level, text and
// remedy that verdicts has for the value, or a warning where it has none. The text of a
// verdict follows the setting and its value, as in
//
//	appendfsync is "no": a power loss takes what the kernel has not written by itself, commonly 30 s
func settingFinding(name, setting string, settings map[string]string, verdicts map[string]Finding) Finding {
	value, ok := settings[setting]
	f, known := verdicts[value]
	switch {
	case !ok:
		f = Finding{
			Level: LevelWarning, Text: fmt.Sprintf("the server does not report %s: it could not be examined", setting),
			Remedy: "compare the server's settings with docs/storage.md",
		}
	case !known:
		f = Finding{
			Level: LevelWarning, Text: fmt.Sprintf("%s is %q, which sous does not know", setting, value),
			Remedy: "compare the server's settings with docs/storage.md",
		}
	default:
		f.Text = fmt.Sprintf("%s is %q: %s", setting, value, f.Text)
	}
	f.Name = name
	return f
}

// checkAppendOnly distinguishes a server that loses everything at its end from one that loses
// the writes since its last snapshot.
func checkAppendOnly(settings map[string]string) Finding {
	f := settingFinding(CheckPersistence, settingAppendOnly, settings, map[string]Finding{
		"yes": {Level: LevelOK, Text: "writes survive a killed server"},
		"no":  {Level: LevelFailure, Remedy: "set appendonly yes"},
	})
	if f.Level != LevelFailure {
		return f
	}
	if save := settings[settingSave]; save != "" {
		f.Text = fmt.Sprintf(`appendonly is "no" and save is %q: a server that ends loses what was written since its last snapshot, accepted jobs included`, save)
	} else {
		f.Text = `appendonly is "no" and save is "": a server that ends loses everything, accepted jobs included`
	}
	return f
}

func checkAppendFsync(settings map[string]string) Finding {
	return settingFinding(CheckPowerLoss, settingAppendFsync, settings, map[string]Finding{
		"always":   {Level: LevelOK, Text: "writes survive a power loss"},
		"everysec": {Level: LevelOK, Text: `a power loss takes the writes of the last second or two ("always" keeps them)`},
		"no": {
			Level: LevelWarning, Text: "a power loss takes what the kernel has not written by itself, commonly 30 s",
			Remedy: "set appendfsync everysec or always",
		},
	})
}

// checkEviction demands noeviction even where maxmemory is 0: CONFIG SET maxmemory,
// or a managed service's own limit, would otherwise begin to remove records.
func checkEviction(settings map[string]string) Finding {
	policy, ok := settings[settingEviction]
	limit, limited := settings[settingMaxMemory]
	f := Finding{Name: CheckEviction, Level: LevelFailure, Remedy: "set maxmemory-policy noeviction"}
	switch {
	case !ok:
		return settingFinding(CheckEviction, settingEviction, settings, nil)
	case policy == "noeviction":
		f.Level, f.Remedy = LevelOK, ""
		f.Text = `maxmemory-policy is "noeviction": a full server refuses writes and keeps its records`
	case limited && limit == "0":
		f.Text = fmt.Sprintf("maxmemory-policy is %q: the server removes records, accepted jobs included, as soon as maxmemory (now 0, no limit) is set", policy)
	default:
		f.Text = fmt.Sprintf("maxmemory-policy is %q: a server that reaches maxmemory (%s) removes records, accepted jobs included", policy, limit)
	}
	return f
}

func checkWAL(settings map[string]string) Finding {
	return settingFinding(CheckPersistence, settingDisableWAL, settings, map[string]Finding{
		"no": {Level: LevelOK, Text: "writes survive a killed server"},
		"yes": {
			Level: LevelFailure, Text: "a killed server loses the writes that are still in its memory, accepted jobs included",
			Remedy: "set rocksdb.write_options.disable_wal no",
		},
	})
}

func checkSync(settings map[string]string) Finding {
	return settingFinding(CheckPowerLoss, settingSync, settings, map[string]Finding{
		"yes": {Level: LevelOK, Text: "writes survive a power loss"},
		"no":  {Level: LevelOK, Text: `a power loss takes the last writes ("yes" keeps them); a killed server loses none`},
	})
}

// checkStrictKeys checks the setting by which KVRocks runs scripts in parallel. It requires
// that every script declares its keys.
func checkStrictKeys(settings map[string]string) Finding {
	if _, ok := settings[settingStrictKeys]; !ok {
		return Finding{
			Name: CheckScripts, Level: LevelWarning,
			Text:   fmt.Sprintf("the server does not know %s: every script stops the whole server while it runs", settingStrictKeys),
			Remedy: fmt.Sprintf("upgrade to %s or later and set %s yes", minimum[KindKVRocks], settingStrictKeys),
		}
	}
	return settingFinding(CheckScripts, settingStrictKeys, settings, map[string]Finding{
		"yes": {Level: LevelOK, Text: "scripts run in parallel, under locks on their keys"},
		"no": {
			Level: LevelWarning, Text: "every script stops the whole server while it runs",
			Remedy: "set lua-strict-key-accessing yes",
		},
	})
}

func checkCursors(settings map[string]string) Finding {
	return settingFinding(CheckCursors, settingCursors, settings, map[string]Finding{
		"yes": {Level: LevelOK, Text: "SCAN returns cursors that sous can read"},
		"no": {
			Level: LevelFailure, Text: "SCAN returns cursors that are not numbers, which fails the sweeper and every scan of records",
			Remedy: "set redis-cursor-compatible yes",
		},
	})
}

// checkProtocol accepts both values. The server answers in RESP3 only on a connection
// that asked for it by HELLO 3, and runs every script under RESP2; sous asks for RESP2.
func checkProtocol(settings map[string]string) Finding {
	const text = "sous speaks RESP2, which the server answers in either case"
	return settingFinding(CheckProtocol, settingRESP3, settings, map[string]Finding{
		"yes": {Level: LevelOK, Text: text},
		"no":  {Level: LevelOK, Text: text},
	})
}
