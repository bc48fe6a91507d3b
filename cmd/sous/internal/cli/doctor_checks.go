package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/whoami"
	"github.com/codesous/sous/cmd/sous/internal/build"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
	"github.com/codesous/sous/cmd/sous/internal/server"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/access"
	"github.com/codesous/sous/storage/examine"
)

// examine runs all checks.
func (a commands) examine(ctx context.Context, o server.PreflightOptions) []checkup {
	checks := checkSandbox(ctx)
	settings := server.RunPreflight(ctx, o)
	for _, f := range settings.Findings {
		if f.Name == "port" && f.Level == verdictFail {
			f = a.excusePort(ctx, f, settings.Listen)
		}
		checks = append(checks, checkup{Name: f.Name, Verdict: f.Level, Detail: f.Detail, Mend: f.Mend})
	}
	checks = append(checks, a.checkServer(ctx)...)
	if settings.Store != "" {
		checks = append(checks, checkStore(ctx, settings.Store)...)
	}
	return checks
}

// excusePort changes the finding of an address that cannot be had: a server of sous that
// answers there is no fault, and a user who works with a server elsewhere needs no port.
func (a commands) excusePort(ctx context.Context, f server.Finding, listen string) server.Finding {
	host, port, _ := net.SplitHostPort(listen) // the settings are valid
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	there, err := client.New("http://"+net.JoinHostPort(host, port), client.Config{UserAgent: "sous/" + build.Version()})
	if err == nil && there.Ready(ctx) == nil {
		return server.Finding{Name: f.Name, Level: verdictOK, Detail: listen + " is used by a server of sous"}
	}
	if t, err := a.Target(); err == nil && t.Client.URL() != command.DefaultURL {
		f.Level = verdictWarn
	}
	return f
}

// checkSandbox starts a sandbox and reports the layers that confine it.
func checkSandbox(ctx context.Context) []checkup {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	var layers []sandbox.Layer
	executable, closeExecutable, err := server.SandboxExecutable()
	if err == nil {
		layers, err = sandbox.Doctor(ctx, sandbox.Config{Executable: executable})
		err = errors.Join(err, closeExecutable())
	}
	if err != nil {
		return []checkup{{Name: "sandbox", Verdict: verdictFail, Detail: err.Error(),
			Mend: "ulimit -u and ulimit -v must leave room for a process; in a container, its seccomp profile must allow seccomp(2) and clone(2)"}}
	}
	out := []checkup{{Name: "sandbox", Verdict: verdictOK, Detail: "a child starts and answers"}}
	if risk := server.CgoRisk(executable); risk != "" {
		out = append(out, checkup{Name: "sandbox build", Verdict: verdictWarn, Detail: risk, Mend: server.CgoMend})
	}
	for _, l := range layers {
		out = append(out, layerCheckup(l))
	}
	return out
}

// layerCheckup returns the line of a layer.
func layerCheckup(l sandbox.Layer) checkup {
	c := checkup{Name: "sandbox: " + l.Name, Verdict: verdictOff, Detail: l.Detail, Mend: sandbox.Mend(l)}
	if l.Active {
		c.Verdict = verdictOK
	}
	return c
}

// checkServer asks the target for its readiness, and if it answers, for the key, the version
// and the clock. A missing server at the default address is no failure unless the user named
// that address: doctor is also run before there is one.
func (a commands) checkServer(ctx context.Context) []checkup {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	t, err := a.Target()
	if err != nil {
		return []checkup{{Name: "server", Verdict: verdictFail, Detail: errorText(err),
			Mend: "export SOUS_URL=http://HOST:PORT, or choose a profile: sous profile list, sous profile use NAME"}}
	}
	err = t.Client.Ready(ctx)
	switch {
	case err == nil:
		out := []checkup{{Name: "server", Verdict: verdictOK, Detail: t.Client.URL() + " is ready"}}
		begin := time.Now()
		id, err := t.Client.WhoAmI(ctx)
		return append(out, identityCheckups(t, id, err, begin, time.Now())...)
	case t.Client.URL() == command.DefaultURL && !a.NamesServer():
		return []checkup{{Name: "server", Verdict: verdictOff, Detail: err.Error(), Mend: "sous dev starts one; export SOUS_URL=http://HOST:PORT names another one"}}
	}
	return []checkup{{Name: "server", Verdict: verdictFail, Detail: err.Error(), remote: true,
		Mend: mendOf(err, "see the log of the server; if its store does not answer: sous doctor --store URL")}}
}

// identityCheckups returns the lines about the key, the version and the clock of the server
// that answered id or err between begin and end.
func identityCheckups(t *command.Target, id whoami.Identity, err error, begin, end time.Time) []checkup {
	key := checkup{Name: "key", Verdict: verdictFail}
	switch code := api.ErrorCode(err); {
	case err == nil:
	case code == api.CodeAuthnRequired:
		key.Detail = "no key is set, and the server requires one"
		key.Mend = "export SOUS_KEY=sous_…; the first one is made on the machine of the server: sous keys bootstrap --store URL"
		return []checkup{key}
	case code == api.CodeAuthnInvalid:
		key.Detail = "the server does not accept the key: it is unknown, expired or revoked"
		key.Mend = "export SOUS_KEY=sous_…, or sous profile set NAME --key-from-env; an administrator makes one: sous keys create NAME --role developer"
		return []checkup{key}
	case code == api.CodeRouteNotFound:
		return []checkup{{Name: "server version", Verdict: verdictWarn, Detail: "the server does not answer GET /v1/whoami: it does not run the role api, or it is older than this program, " + build.Version(), Mend: "name a replica with the role api, or install the same version on both; sous version prints this one"}}
	default:
		return []checkup{{Name: "key", Verdict: verdictFail, Detail: errorText(err), Mend: mendOf(err, "see the log of the server"), remote: true}}
	}
	return []checkup{keyCheckup(t, id), versionCheckup(id.ServerVersion), skewCheckup(id.ServerTimeMS, begin, end)}
}

// keyExpiresSoon is the rest of a key's life from which on doctor warns.
const keyExpiresSoon = 7 * 24 * time.Hour

// keyCheckup returns the line of a key that the server accepts.
func keyCheckup(t *command.Target, id whoami.Identity) checkup {
	c := checkup{Name: "key", Verdict: verdictOK}
	if id.Auth == whoami.AuthOff {
		c.Detail = "none is needed: the server runs with --auth off"
		return c
	}
	c.Detail = fmt.Sprintf("%s (%s) is accepted for %s, with the roles %s", id.KeyID, id.Name, validity(id), strings.Join(id.Roles, ", "))
	switch {
	case id.Tenant != api.AllTenants && id.Tenant != t.TenantName:
		c.Verdict, c.Detail = verdictFail, c.Detail+"; commands work on the tenant "+t.TenantName
		c.Mend = "export SOUS_TENANT=" + id.Tenant
	case id.Namespace != "" && id.Namespace != t.NamespaceName:
		c.Verdict, c.Detail = verdictFail, c.Detail+"; commands work on the namespace "+t.NamespaceName
		c.Mend = "export SOUS_NAMESPACE=" + id.Namespace
	case id.ExpiresAtMS != 0 && id.ExpiresAtMS-id.ServerTimeMS < keyExpiresSoon.Milliseconds():
		c.Verdict, c.Detail = verdictWarn, c.Detail+"; it expires at "+command.TimeText(id.ExpiresAtMS)
		c.Mend = "sous keys create NAME --role " + strings.Join(id.Roles, " --role ")
	}
	return c
}

// versionCheckup compares the version of the server with that of this program.
func versionCheckup(served string) checkup {
	c := checkup{Name: "server version", Verdict: verdictOK, Detail: served}
	if own := build.Version(); served != own {
		c.Verdict, c.Detail = verdictWarn, served+", while this program is "+own
		c.Mend = "install the same version on both; sous version prints this one"
	}
	return c
}

// skewCheckup compares the clock of the server, which it read between begin and end, with
// this machine's.
func skewCheckup(servedMS int64, begin, end time.Time) checkup {
	bound := end.Sub(begin) / 2
	ahead := time.UnixMilli(servedMS).Sub(begin.Add(bound))
	c := checkup{Name: "server clock", Verdict: verdictOK, Detail: fmt.Sprintf("%s ahead of this machine's (±%s)", ahead.Round(time.Millisecond), bound.Round(time.Millisecond))}
	if ahead < 0 {
		c.Detail = fmt.Sprintf("%s behind this machine's (±%s)", -ahead.Round(time.Millisecond), bound.Round(time.Millisecond))
	}
	if certain := ahead.Abs() - bound; certain > examine.SkewWarning {
		c.Verdict, c.Mend = verdictWarn, mendClock
		if certain > examine.SkewFailure {
			c.Verdict = verdictFail
		}
	}
	return c
}

// mendClock is the command that sets a clock.
const mendClock = "sudo timedatectl set-ntp true, on this machine and on that of the server and of the store"

// checkStore connects to the store and examines it. It writes nothing.
func checkStore(ctx context.Context, url string) (checks []checkup) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	failed := func(name string, err error, mend string) checkup {
		return checkup{Name: name, Verdict: verdictFail, Detail: err.Error(), Mend: mend, remote: true}
	}
	begin := time.Now()
	s, err := storage.Open(ctx, storage.Config{URL: url}) // Open pings the server
	if err != nil {
		return []checkup{failed("store", err, "docker run -d -p 6666:6666 apache/kvrocks starts one for --store redis://127.0.0.1:6666; deploy/kvrocks.conf has the settings for production")}
	}
	defer func() { _ = s.Close() }() // nothing was written
	detail := fmt.Sprintf("answers, first contact took %s", time.Since(begin).Round(time.Microsecond))
	checks = []checkup{{Name: "store", Verdict: verdictOK, Detail: detail}}
	report, err := examine.Servers(ctx, s)
	if err != nil {
		return append(checks, failed("store: settings", err, "compare the server's settings with docs/storage.md"))
	}
	for _, f := range report.Findings {
		checks = append(checks, storeCheckup(f))
	}
	exists, err := access.NewAPIKeys(s).Any(ctx)
	switch {
	case err != nil:
		checks = append(checks, failed("store: API keys", err, "the user of the store's URL must be allowed to read"))
	case exists:
		checks = append(checks, checkup{Name: "store: API keys", Verdict: verdictOK, Detail: "there are some"})
	default:
		checks = append(checks, checkup{Name: "store: API keys", Verdict: verdictWarn, Detail: "there is none: sous serve refuses every call",
			Mend: "sous keys bootstrap --store URL"})
	}
	return checks
}

// storeCheckup returns the line of a finding.
func storeCheckup(f examine.Finding) checkup {
	verdict := map[examine.Level]string{
		examine.LevelOK: verdictOK, examine.LevelWarning: verdictWarn, examine.LevelFailure: verdictFail,
	}[f.Level]
	detail := f.Text
	if f.Server != "" {
		detail = f.Server + ": " + detail
	}
	return checkup{Name: "store: " + f.Name, Verdict: verdict, Detail: detail, Mend: storeMend(f), remote: true}
}

// storeMend returns the command for a finding. A remedy "set NAME VALUE" is a line of the
// server's configuration file, and most servers also take it while they run.
func storeMend(f examine.Finding) string {
	setting, ok := strings.CutPrefix(f.Remedy, "set ")
	switch {
	case f.Remedy == "" || f.Name != examine.CheckClock && !ok:
		return f.Remedy
	case f.Name == examine.CheckClock:
		if strings.Contains(f.Remedy, "NTP") {
			return mendClock
		}
		return f.Remedy
	}
	if name, value, ok := strings.Cut(setting, " "); ok && !strings.Contains(value, " ") {
		return fmt.Sprintf("redis-cli -u URL CONFIG SET %s %s, and \"%s\" in the configuration file of the server", name, value, setting)
	}
	return f.Remedy
}
