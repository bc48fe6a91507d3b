package cli

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/whoami"
	"github.com/codesous/sous/cmd/sous/internal/build"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
	"github.com/codesous/sous/cmd/sous/internal/server"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/storage/examine"
)

// wantCheckup checks a line, and that exactly those that are not ok say how to mend them.
func wantCheckup(t *testing.T, c checkup, verdict, detail, mend string) {
	t.Helper()
	if c.Verdict != verdict || !strings.Contains(c.Detail, detail) || !strings.Contains(c.Mend, mend) || (mend == "") != (c.Mend == "") {
		t.Errorf("got %+v, want verdict %s, a detail with %q and a mend with %q", c, verdict, detail, mend)
	}
}

func testTarget(t *testing.T, url string) *command.Target {
	t.Helper()
	app := &command.App{}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("SOUS_URL", url)
	target, err := app.Target()
	if err != nil {
		t.Fatalf("Target: %v", err)
	}
	return target
}

// It sets the environment of the process, so it is not parallel.
func TestDoctorJudgesTheKey(t *testing.T) {
	target := testTarget(t, command.DefaultURL)
	now := time.Now().UnixMilli()
	key := whoami.Identity{Auth: whoami.AuthKeys, KeyID: "key_1", Name: "ci", Tenant: "t_default", Roles: []string{"viewer"}, ServerTimeMS: now}
	wantCheckup(t, keyCheckup(target, key), verdictOK, "key_1 (ci) is accepted for tenant t_default, all namespaces, with the roles viewer", "")
	wantCheckup(t, keyCheckup(target, whoami.Identity{Auth: whoami.AuthOff, Tenant: "*"}), verdictOK, "--auth off", "")
	other := key
	other.Tenant = "t_other"
	wantCheckup(t, keyCheckup(target, other), verdictFail, "commands work on the tenant t_default", "export SOUS_TENANT=t_other")
	side := key
	side.Namespace = "side"
	wantCheckup(t, keyCheckup(target, side), verdictFail, "commands work on the namespace default", "export SOUS_NAMESPACE=side")
	ending := key
	ending.ExpiresAtMS = now + 60_000
	wantCheckup(t, keyCheckup(target, ending), verdictWarn, "it expires at ", "sous keys create NAME --role viewer")
	for code, mend := range map[api.Code]string{
		api.CodeAuthnRequired: "sous keys bootstrap", api.CodeAuthnInvalid: "sous keys create",
	} {
		got := identityCheckups(target, whoami.Identity{}, api.Errorf(code, "refused"), time.Now(), time.Now())
		if len(got) != 1 || got[0].remote {
			t.Fatalf("%s: got %+v, want one failure of the user", code, got)
		}
		wantCheckup(t, got[0], verdictFail, "key", mend)
	}
}

func TestDoctorComparesVersionAndClock(t *testing.T) {
	t.Parallel()
	wantCheckup(t, versionCheckup(build.Version()), verdictOK, build.Version(), "")
	wantCheckup(t, versionCheckup("0.0.1"), verdictWarn, "0.0.1, while this program is ", "install the same version")
	begin := time.Now()
	end := begin.Add(100 * time.Millisecond)
	wantCheckup(t, skewCheckup(begin.UnixMilli()+50, begin, end), verdictOK, "this machine's (±50ms)", "")
	wantCheckup(t, skewCheckup(begin.Add(3*time.Second).UnixMilli(), begin, end), verdictWarn, "ahead of", "timedatectl set-ntp true")
	wantCheckup(t, skewCheckup(begin.Add(-time.Hour).UnixMilli(), begin, end), verdictFail, "behind", "timedatectl set-ntp true")
}

func TestDoctorNamesTheCommandForAStore(t *testing.T) {
	t.Parallel()
	c := storeCheckup(examine.Finding{Name: examine.CheckEviction, Level: examine.LevelFailure, Text: "bad", Remedy: "set maxmemory-policy noeviction", Server: "h:1"})
	wantCheckup(t, c, verdictFail, "h:1: bad", "redis-cli -u URL CONFIG SET maxmemory-policy noeviction")
	c = storeCheckup(examine.Finding{Name: examine.CheckClock, Level: examine.LevelWarning, Text: "late", Remedy: "synchronize the clocks by NTP"})
	wantCheckup(t, c, verdictWarn, "late", "timedatectl")
	c = storeCheckup(examine.Finding{Name: examine.CheckPowerLoss, Level: examine.LevelWarning, Text: "x", Remedy: "set appendfsync everysec or always"})
	wantCheckup(t, c, verdictWarn, "x", "set appendfsync everysec or always")
	wantCheckup(t, storeCheckup(examine.Finding{Name: examine.CheckVersion, Level: examine.LevelOK, Text: "redis"}), verdictOK, "redis", "")
	wantCheckup(t, layerCheckup(sandbox.Layer{Name: "user namespace"}), verdictOff, "", " ")
	wantCheckup(t, layerCheckup(sandbox.Layer{Name: "user namespace", Active: true}), verdictOK, "", "")
}

// A busy port is no fault if a server of sous has it. It sets the environment of the process.
func TestDoctorExcusesAPortOfSous(t *testing.T) {
	ready := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer ready.Close()
	foreign := httptest.NewServer(http.NotFoundHandler())
	defer foreign.Close()
	testTarget(t, command.DefaultURL)
	a := commands{&command.App{}}
	busy := server.Finding{Name: "port", Level: verdictFail, Detail: "used by x", Mend: "end x"}
	_, port, _ := net.SplitHostPort(ready.Listener.Addr().String())
	if got := a.excusePort(t.Context(), busy, ":"+port); got.Level != verdictOK || got.Mend != "" {
		t.Errorf("a server of sous: got %+v, want ok", got)
	}
	if got := a.excusePort(t.Context(), busy, foreign.Listener.Addr().String()); got != busy {
		t.Errorf("another program: got %+v, want %+v", got, busy)
	}
	t.Setenv("SOUS_URL", "http://elsewhere.example:8080")
	if got := a.excusePort(t.Context(), busy, foreign.Listener.Addr().String()); got.Level != verdictWarn {
		t.Errorf("with a server elsewhere: got %+v, want a warning", got)
	}
}

func TestDoctorPrintsWhatMendsALineBelowIt(t *testing.T) {
	t.Parallel()
	checks := []checkup{
		{Name: "port", Verdict: verdictFail, Detail: "used", Mend: "end it"},
		{Name: "memory", Verdict: verdictOK, Detail: "much"},
		{Name: "store", Verdict: verdictFail, Detail: "gone", Mend: "start it", remote: true},
	}
	var out bytes.Buffer
	a := commands{&command.App{Stdout: &out, Output: command.FormatText}}
	if err := a.printCheckups(checks); err != nil {
		t.Fatalf("printCheckups: %v", err)
	}
	want := "CHECK   VERDICT  DETAIL\nport    fail     used\n  to mend it: end it\nmemory  ok       much\nstore   fail     gone\n  to mend it: start it\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	for i, test := range []struct {
		checks []checkup
		code   int
		text   string
	}{
		{checks, 1, "2 checks failed: port, store"},
		{checks[1:], 2, "1 check failed: store"},
		{checks[1:2], 0, ""},
	} {
		err := failedCheckups(test.checks)
		if command.ExitCode(err) != test.code || err != nil && err.Error() != test.text {
			t.Errorf("case %s: got %v with exit code %d, want %q with %d", strconv.Itoa(i), err, command.ExitCode(err), test.text, test.code)
		}
	}
}
