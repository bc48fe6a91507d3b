package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox"
	sandboxmemory "github.com/codesous/sous/invoker/sandbox/memory"
	"github.com/codesous/sous/storage/secrets"
)

// The levels of a Finding.
const (
	LevelOK   = "ok"
	LevelOff  = "off"  // the settings do not use it
	LevelWarn = "warn" // a server starts, with less room than it should have
	LevelFail = "fail" // a server with these settings does not start, or loses data
)

// Finding is the result of one check of the settings on this machine.
type Finding struct {
	Name, Level string
	Detail      string
	Mend        string // the command or the setting that mends it; "" for LevelOK
}

// PreflightOptions override settings, as the flags of the same names do. "" overrides nothing.
type PreflightOptions struct {
	Config, Listen, DataDir, Store string
}

// Preflight is what Preflight found.
type Preflight struct {
	Findings []Finding
	Store    string // the URL of the store that the settings name, "" for the embedded store
	Listen   string // the address of the settings, "" if they are not valid
}

// RunPreflight reads the settings that a server started in this folder would have, and
// examines whether this machine satisfies them: the address, the limit of open files, the
// memory, the data folder, the key file and the certificate. It changes nothing.
func RunPreflight(ctx context.Context, o PreflightOptions) Preflight {
	flags := pflag.NewFlagSet("doctor", pflag.ContinueOnError)
	RegisterServe(flags)
	flags.String("data-dir", "", "")
	for name, value := range map[string]string{"config": o.Config, "listen": o.Listen, "data-dir": o.DataDir, "store": o.Store} {
		if value != "" {
			_ = flags.Set(name, value) // a text flag takes every value
		}
	}
	s, err := loadSettings(flags)
	out := Preflight{Store: s.Store, Findings: []Finding{checkSettings(o.Config, err)}}
	if err != nil {
		out.Store, _ = StoreURL(o.Store) // a bad file is in err, too
		return out
	}
	out.Listen = s.Listen
	out.Findings = append(out.Findings, checkListen(ctx, s.Listen), checkFiles(s), checkMemory(s), checkDataDir(s), checkSecretsKey(s), checkCertificate(s))
	return out
}

// checkSettings reports the configuration file that a server would read, and err, the error of
// the settings.
func checkSettings(config string, err error) Finding {
	path, named := ConfigFile(config)
	f := Finding{Name: "configuration", Level: LevelOK}
	if abs, absErr := filepath.Abs(path); absErr == nil {
		path = abs
	}
	_, missing := os.Stat(path)
	switch {
	case err != nil:
		f.Level, f.Detail = LevelFail, err.Error()
		f.Mend = "correct the setting; sous serve --help lists all of them"
		if named || missing == nil {
			f.Mend = "correct " + path + " or the variable SOUS_…; sous serve --help lists the settings"
		}
	case missing != nil:
		f.Level, f.Detail = LevelOff, "no "+path+", SOUS_CONFIG is not set: flags and variables only"
	default:
		f.Detail = path
	}
	return f
}

// checkListen tries to listen on address, for a moment.
func checkListen(ctx context.Context, address string) Finding {
	f := Finding{Name: "port", Level: LevelOK, Detail: address + " is free"}
	_, port, _ := net.SplitHostPort(address) // the settings are valid
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err == nil {
		_ = listener.Close() // nothing was accepted
		return f
	}
	f.Level = LevelFail
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		owner := portOwner(port)
		f.Detail = address + " is used by " + owner
		if strings.HasPrefix(owner, "sous ") {
			f.Level = LevelOK
			return f
		}
		f.Mend = "sous dev --listen 127.0.0.1:0, which takes a free port and prints it; or end that program"
	case errors.Is(err, syscall.EACCES):
		f.Detail = "this user may not listen on " + address + ": ports below 1024 belong to root"
		f.Mend = "sudo setcap cap_net_bind_service=+ep \"$(command -v sous)\"; or choose a port from 1024, such as --listen 127.0.0.1:8080"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		f.Detail = address + " is no address of this machine"
		f.Mend = "choose an address that \"ip address\" prints, or --listen :" + port + " for all of them"
	default:
		f.Detail = err.Error()
		f.Mend = "choose another address: --listen HOST:PORT"
	}
	return f
}

// lowConnections is the number of connections below which a server is small.
const lowConnections = 1_000

// checkFiles compares the limit of open files with the needs of a server.
func checkFiles(s settings) Finding {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return Finding{"open files", LevelWarn, "the limit cannot be read: " + err.Error(), "ulimit -n"}
	}
	return fileFinding(limit.Cur, s)
}

// fileFinding is checkFiles for a limit.
func fileFinding(limit uint64, s settings) Finding {
	const mend = "ulimit -n 65536 (as root for more than \"ulimit -Hn\"); in a systemd unit LimitNOFILE=65536; docker run --ulimit nofile=65536"
	connections, err := deriveConnections(limit, s.SandboxMax, s.Network.MaxConnections)
	switch {
	case err != nil:
		return Finding{"open files", LevelFail, err.Error(), mend}
	case connections < lowConnections && s.Network.MaxConnections == 0:
		return Finding{"open files", LevelWarn, fmt.Sprintf("the limit of %d allows %d connections only", limit, connections), mend}
	}
	return Finding{"open files", LevelOK, fmt.Sprintf("the limit of %d allows %d connections", limit, connections), ""}
}

// checkMemory compares the memory of this machine, or of its container, with the needs of
// sandboxes.
func checkMemory(s settings) Finding {
	memory, err := sandboxmemory.HostMemory()
	if err != nil {
		return Finding{"memory", LevelWarn, "the memory of this machine cannot be read: " + err.Error(), "cat /sys/fs/cgroup/memory.max /proc/meminfo"}
	}
	return memoryFinding(memory, s.SandboxMemoryBudget<<20)
}

// memoryFinding is checkMemory for a memory and a budget of sandboxes, both in bytes. A budget
// of 0 is the default.
func memoryFinding(memory, budget int64) Finding {
	const mend = "give the container more: docker run --memory 2g, or MemoryMax=2G in a systemd unit"
	if budget == 0 {
		budget = sandbox.DefaultBudget(memory)
	}
	one := sandboxmemory.BudgetBytes(api.DefaultMemoryMB)
	detail := fmt.Sprintf("%s for this process, of which sandboxes take %s: %d of %d MB at a time",
		api.SizeText(memory), api.SizeText(budget), budget/one, api.DefaultMemoryMB)
	switch {
	case budget > memory:
		return Finding{"memory", LevelFail, detail + "; the sandboxes may take more than there is", "lower sandbox-memory-budget: --sandbox-memory-budget " + strconv.FormatInt(max(memory/2>>20, 1), 10) + "; or " + mend}
	case budget < one:
		return Finding{"memory", LevelFail, detail + "; a function with the default limit cannot run", mend}
	case budget < 4*one:
		return Finding{"memory", LevelWarn, detail, mend}
	}
	return Finding{"memory", LevelOK, detail, ""}
}

// The free space below which the embedded store is in danger, in bytes.
const (
	leastSpace = 64 << 20
	lowSpace   = 1 << 30
)

// checkDataDir examines the folder of the embedded store, which sous dev uses.
func checkDataDir(s settings) Finding {
	if s.Store != "" {
		return Finding{"data folder", LevelOff, "the settings name a store server, so no folder is used", ""}
	}
	dir := s.DataDir
	if dir == "" {
		var err error
		dir, err = findDataDir()
		if err != nil {
			return Finding{"data folder", LevelFail, err.Error(), "sous dev --data-dir DIR"}
		}
	}
	return dataDirFinding(dir)
}

// dataDirFinding is checkDataDir for a folder.
func dataDirFinding(dir string) Finding {
	f := Finding{Name: "data folder", Level: LevelFail}
	existing, info, err := nearestExisting(dir)
	switch {
	case err != nil:
		f.Detail, f.Mend = err.Error(), "sous dev --data-dir DIR with a folder that this user can read"
		return f
	case !info.IsDir():
		f.Detail, f.Mend = existing+" is no folder", "sous dev --data-dir DIR with another folder"
		return f
	case unix.Access(existing, unix.W_OK|unix.X_OK) != nil:
		f.Detail = "this user may not write to " + existing
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Getuid() {
			f.Detail += fmt.Sprintf(", which belongs to user %d", owner.Uid)
			f.Mend = fmt.Sprintf("sudo chown -R \"$(id -u)\" %q", existing)
		} else {
			f.Mend = fmt.Sprintf("chmod u+rwx %q", existing)
		}
		return f
	}
	detail := dir
	if existing != dir {
		detail += " does not exist yet: sous dev creates it"
	}
	var space unix.Statfs_t
	if err := unix.Statfs(existing, &space); err != nil {
		return Finding{f.Name, LevelWarn, detail + "; its free space cannot be read: " + err.Error(), fmt.Sprintf("df -h %q", existing)}
	}
	return spaceFinding(detail, existing, int64(space.Bavail)*space.Bsize)
}

// spaceFinding is the finding for a folder with so many free bytes.
func spaceFinding(detail, dir string, free int64) Finding {
	f := Finding{"data folder", LevelOK, detail + ", " + api.SizeText(free) + " free", ""}
	if free < lowSpace {
		f.Level, f.Mend = LevelWarn, fmt.Sprintf("du -sh %q shows what takes the space; sous dev --data-dir DIR uses another disk", dir)
	}
	if free < leastSpace {
		f.Level = LevelFail
	}
	return f
}

// nearestExisting returns dir, or the folder above it that exists.
func nearestExisting(dir string) (string, os.FileInfo, error) {
	for {
		info, err := os.Stat(dir)
		if !errors.Is(err, os.ErrNotExist) || dir == filepath.Dir(dir) {
			return dir, info, err
		}
		dir = filepath.Dir(dir)
	}
}

// checkSecretsKey reads the key file of secrets, if the settings name one.
func checkSecretsKey(s settings) Finding {
	f := Finding{Name: "secrets key", Level: LevelOK}
	switch {
	case s.SecretsKey == "" && s.Store == "":
		f.Level, f.Detail = LevelOff, "sous dev makes one in its data folder"
		return f
	case s.SecretsKey == "":
		f.Level, f.Detail = LevelOff, "no secrets-key-file: sous serve can neither write nor read secrets"
		f.Mend = "sous secret keygen secrets.key && export SOUS_SECRETS_KEY_FILE=\"$PWD/secrets.key\""
		return f
	}
	if _, err := secrets.OpenKeyFile(s.SecretsKey, zap.NewNop()); err != nil {
		f.Level, f.Detail = LevelFail, err.Error()
		f.Mend = fmt.Sprintf("chmod 600 %q, if the mode is at fault; restore it from a backup, if the content is", s.SecretsKey)
		if errors.Is(err, os.ErrNotExist) {
			f.Mend = fmt.Sprintf("sous secret keygen %q", s.SecretsKey)
		}
		return f
	}
	f.Detail = s.SecretsKey
	return f
}

// checkCertificate reads the certificate of the server, if the settings name one.
func checkCertificate(s settings) Finding {
	f := Finding{Name: "certificate", Level: LevelOff, Detail: "plain HTTP"}
	if s.Network.TLSCert == "" {
		return f
	}
	f.Level, f.Detail = LevelOK, s.Network.TLSCert
	if _, err := loadCertificate(s.Network.TLSCert, s.Network.TLSKey, zap.NewNop()); err != nil {
		f.Level, f.Detail = LevelFail, err.Error()
		f.Mend = fmt.Sprintf("openssl x509 -in %q -noout -dates -subject shows what the file holds; tls-key names its key", s.Network.TLSCert)
	}
	return f
}
