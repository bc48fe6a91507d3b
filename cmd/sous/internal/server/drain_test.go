package server

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/storage/storagetest"
)

// waitLimit is how long a test waits for what another process does.
const waitLimit = 20 * time.Second

// drainTest is a server in the middle of an invocation.
type drainTest struct {
	t      *testing.T
	data   string
	server *soustest.Server
	tenant *client.Tenant
	answer chan error // of the invocation
	got    client.Invoked
}

// startDrain starts a server with args and an invocation that takes pause.
func startDrain(t *testing.T, pause time.Duration, args ...string) *drainTest {
	t.Helper()
	d := &drainTest{t: t, data: t.TempDir(), answer: make(chan error, 1)}
	d.start(args...)
	source := filepath.Join(t.TempDir(), "sleeper")
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatalf("os.Mkdir: %v", err)
	}
	code := `export default (ms) => new Promise((done) => { console.log("begun"); setTimeout(() => done("done"), ms); });`
	if err := os.WriteFile(filepath.Join(source, "function.js"), []byte(code), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	d.server.Sous(t, "fn", "deploy", source, "--config", `{"timeout_ms": 60000}`)
	go func() {
		var err error
		d.got, err = d.tenant.Namespace("default").Function("sleeper").Invoke(t.Context(), client.InvokeOptions{
			Ref: api.Ref{Alias: api.DefaultAlias}, Event: []byte(strconv.FormatInt(pause.Milliseconds(), 10)),
		})
		d.answer <- err
	}()
	d.await(api.StatusRunning)
	return d
}

func (d *drainTest) start(args ...string) {
	d.t.Helper()
	c := soustest.Command{Args: append([]string{"dev", "--data-dir", d.data}, args...)}
	server, err := c.Start(soustest.Executable(d.t))
	if err != nil {
		d.t.Fatalf("Start: %v", err)
	}
	d.t.Cleanup(func() {
		if err := server.Kill(); err != nil {
			d.t.Errorf("Kill: %v", err)
		}
	})
	d.server = server
	api, err := client.New(server.URL, client.Config{})
	if err != nil {
		d.t.Fatalf("client.New(%s): %v", server.URL, err)
	}
	d.tenant = api.Tenant("t_default")
}

// await returns the only activation once it has the status.
func (d *drainTest) await(status api.Status) api.Activation {
	d.t.Helper()
	filter := client.ActivationFilter{Namespace: "default", Function: "sleeper"}
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(10 * time.Millisecond) {
		page, err := d.tenant.Activations(d.t.Context(), filter, client.PageOptions{})
		if err != nil {
			d.t.Fatalf("Activations: %v", err)
		}
		if len(page.Items) == 1 && page.Items[0].Status == status {
			return page.Items[0]
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("activations %+[2]v, want one with status %[1]s", status, page.Items)
		}
	}
}

func TestRequestInHandFinishes(t *testing.T) {
	t.Parallel()
	d := startDrain(t, time.Second)
	if err := d.server.Stop(); err != nil { // a clean end, no child left
		t.Fatalf("Stop: %v", err)
	}
	if err := <-d.answer; err != nil || d.got.Status != api.StatusSuccess || string(d.got.Result) != `"done"` {
		t.Errorf("call in flight = %+v, %v, want the result done", d.got, err)
	}
	d.start()
	if a := d.await(api.StatusSuccess); a.ActivationID != d.got.ActivationID {
		t.Errorf("got the record of %s, want that of the answered %s", a.ActivationID, d.got.ActivationID)
	}
}

func TestDrainTimeout(t *testing.T) {
	t.Parallel()
	d := startDrain(t, time.Minute, "--drain-timeout", "100ms")
	if err := d.server.Stop(); err == nil || !strings.Contains(d.server.Output(), "requests in flight were interrupted") {
		t.Errorf("got %v, want an end that says that requests were interrupted\n%s", err, d.server.Output())
	}
	if err := <-d.answer; err == nil {
		t.Errorf("call in flight: got the answer %+v, want it interrupted", d.got)
	}
	d.start()
	d.await(api.StatusCancelled)
}

func TestSecondInterruptEndsAtOnce(t *testing.T) {
	t.Parallel()
	d := startDrain(t, time.Minute)
	children, err := soustest.Children(d.server.Pid())
	if err != nil {
		t.Fatalf("Children: %v", err)
	}
	if err := d.server.Signal(syscall.SIGINT); err != nil {
		t.Fatalf("Signal: %v", err)
	}
	for deadline := time.Now().Add(waitLimit); !strings.Contains(d.server.Output(), "draining"); {
		if time.Now().After(deadline) {
			t.Fatalf("no log line says draining, want one\n%s", d.server.Output())
		}
		time.Sleep(5 * time.Millisecond) // only the log shows it
	}
	begin := time.Now()
	if err := d.server.Signal(syscall.SIGINT); err != nil {
		t.Fatalf("Signal: %v", err)
	}
	if err := d.server.Wait(); err == nil || !strings.Contains(err.Error(), "interrupt") {
		t.Errorf("got %v, want death by the signal", err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the end took %s, want at most 5s", took)
	}
	if err := soustest.Gone(children); err != nil {
		t.Errorf("Gone: %v", err)
	}
	if err := <-d.answer; err == nil {
		t.Errorf("call in flight: got the answer %+v, want it interrupted", d.got)
	}
}

func TestServeOnCluster(t *testing.T) {
	t.Parallel()
	c := soustest.Command{Args: []string{"serve", "--auth", "off", "--store", storagetest.Cluster(t)}}
	server, err := c.Start(soustest.Executable(t))
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	tenant := storagetest.Tenant(t)
	server.Sous(t, "fn", "deploy", "../../../../examples/hello", "--tenant", tenant)
	if out := server.Sous(t, "fn", "invoke", "hello", "--tenant", tenant); !strings.Contains(out, "success") {
		t.Errorf("fn invoke hello on a cluster printed %q, want a success", out)
	}
}
