package examples

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
	"github.com/codesous/sous/storage/storagetest"
)

func TestWorkerPython(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	for _, file := range []string{"worker-python/worker.py", "worker-python/sous_worker.py"} {
		if _, err := os.Stat(file); err != nil { // and go test sees when it changes
			t.Fatal(err)
		}
	}
	testWorker(t, python, "-B", "worker-python/worker.py") // -B: leaves no files here
}

func TestWorkerGo(t *testing.T) {
	t.Parallel()
	testWorker(t, sandboxtest.Build(t, "github.com/codesous/sous/examples/worker-go"))
}

// post is a server that wants keys, with letters to be sent.
type post struct {
	t       *testing.T
	config  platformtest.Config
	server  *platformtest.Server
	command []string
	key     string // a worker's
}

// testWorker has the worker do jobs of every kind, lose its server, and stop in the
// middle of its work.
func testWorker(t *testing.T, command ...string) {
	store := storagetest.Redis(t, "--appendonly", "yes")
	p := &post{t: t, config: platformtest.Config{Store: store.URL, Key: platformtest.Bootstrap(t, store.URL)}, command: command}
	p.server = p.config.Serve(t)
	made, err := p.tenant().CreateKey(t.Context(), client.NewKey{
		Name: "post", Roles: []string{"worker"}, Namespace: platformtest.Namespace,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.key = made.Secret
	w := p.start()
	p.delivers(w)
	p.outlives(w)
	p.stops(w)
	if said := w.said.String(); strings.Contains(said, "sous_") {
		t.Errorf("the worker shows its key: %s", said)
	}
}

func (p *post) tenant() *client.Tenant { return p.server.API(p.t) }

func (p *post) enqueue(payloads ...string) []string {
	p.t.Helper()
	jobs := make([]api.NewJob, len(payloads))
	for i, text := range payloads {
		jobs[i].Payload = []byte(text)
	}
	made, err := p.tenant().Namespace(platformtest.Namespace).Queue("letters").Enqueue(p.t.Context(), "", jobs...)
	if err != nil {
		p.t.Fatal(err)
	}
	ids := make([]string, len(made))
	for i := range made {
		ids[i] = made[i].ID
	}
	return ids
}

func (p *post) job(id string) api.Job {
	p.t.Helper()
	job, err := p.tenant().Job(p.t.Context(), id)
	if err != nil {
		p.t.Fatal(err)
	}
	return job
}

// await waits until the job is as ok wants it, and returns it.
func (p *post) await(what, id string, ok func(api.Job) bool) (job api.Job) {
	p.t.Helper()
	platformtest.Eventually(p.t, 30*time.Second, what, func() error {
		if job = p.job(id); !ok(job) {
			return fmt.Errorf("%s %s %s", job.State, job.Progress, job.Payload)
		}
		return nil
	})
	return job
}

func in(state api.JobState) func(api.Job) bool {
	return func(j api.Job) bool { return j.State == state }
}

// letters are n payloads of the given number of pages.
func letters(n, pages int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`{"to": "reader-%d@example.com", "pages": %d}`, i, pages)
	}
	return out
}

// delivers: 100 letters, of which one is retried, one is no letter, and one is
// cancelled while it is sent.
func (p *post) delivers(w *workerProcess) {
	t := p.t
	ids := p.enqueue(append(letters(97, 1), `{"to": "ada@busy.example"}`, `{"to": "nobody"}`, `{"to": "long@example.com", "pages": 100000}`)...)
	long := ids[99]
	p.await("the long letter's progress is told", long, func(j api.Job) bool {
		return j.State == api.JobActive && bytes.Contains(j.Progress, []byte(`"total":100000`)) && len(j.Checkpoint) > 0
	})
	if _, err := p.tenant().CancelJob(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	platformtest.Eventually(t, 20*time.Second, "the worker hears of it", func() error {
		if said := w.said.String(); !strings.Contains(said, "job "+long) || !strings.Contains(said, "cancelled") {
			return errors.New(said)
		}
		return nil
	})
	for i, id := range ids[:98] {
		p.await("the letter is sent", id, in(api.JobCompleted))
		job := p.job(id)
		attempts, to := 1, fmt.Sprintf("reader-%d@example.com", i)
		if i == 97 {
			attempts, to = 2, "ada@busy.example"
		}
		var result struct{ Sent string }
		if err := json.Unmarshal(job.Result, &result); err != nil || result.Sent != to || job.Attempt != attempts || len(job.Errors) != attempts-1 {
			t.Errorf("%s: %s after %d attempts: %v %v", job.Payload, job.Result, job.Attempt, job.Errors, err)
		}
	}
	p.await("the letter without an address is dead", ids[98], in(api.JobDead))
	if job := p.job(ids[98]); job.DeadReason != api.DeadFatal || len(job.Errors) != 1 || job.Errors[0].Error != "nobody is no address" {
		t.Errorf("%+v", job)
	}
	if job := p.job(long); job.State != api.JobCancelled || job.Attempt != 1 {
		t.Errorf("%+v", job)
	}
}

// outlives: the server is killed and comes back, and the worker goes on with what
// it has in hand.
func (p *post) outlives(w *workerProcess) {
	ids := p.enqueue(letters(5, 30)...)
	for _, id := range ids {
		p.await("the letter is begun", id, in(api.JobActive))
	}
	if err := p.server.Kill(); err != nil {
		p.t.Fatal(err)
	}
	platformtest.Eventually(p.t, 20*time.Second, "the worker misses the server", func() error {
		if !strings.Contains(w.said.String(), "fetch") {
			return errors.New(w.said.String())
		}
		return nil
	})
	again := p.config
	again.Listen = strings.TrimPrefix(p.server.URL, "http://")
	p.server = again.Serve(p.t)
	for _, id := range append(ids, p.enqueue(letters(1, 1)...)...) {
		p.await("the letter is sent", id, in(api.JobCompleted))
	}
}

// stops: what is begun is finished, and nothing else is touched.
func (p *post) stops(w *workerProcess) {
	t := p.t
	ids := p.enqueue(letters(200, 10)...) // more than are sent until the signal comes
	p.await("the work is under way", ids[15], in(api.JobCompleted))
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := w.wait(20 * time.Second); err != nil {
		t.Fatalf("the worker ended with %v: %s", err, w.said.String())
	}
	states := map[string]int{}
	for _, id := range ids {
		// The server gives back what it has just handed out once it sees the
		// connection end, which may be after the worker's end.
		job := p.await("the job is not held any more", id, func(j api.Job) bool { return j.State != api.JobActive })
		state := "done"
		switch job.State {
		case api.JobCompleted:
		case api.JobPending, api.JobRetrying: // it was given back
			state, job.Attempt = "left", job.Attempt+1
		default:
			state = string(job.State)
		}
		states[state]++
		if job.Attempt != 1 || len(job.Errors) > 0 {
			t.Errorf("%s: attempt %d, errors %v", job.State, job.Attempt, job.Errors)
		}
	}
	if states["done"] < 16 || states["left"] == 0 || states["done"]+states["left"] != len(ids) {
		t.Errorf("after the stop: %v", states)
	}
	second := p.start()
	for _, id := range ids {
		p.await("a second worker does what was left", id, in(api.JobCompleted))
	}
	if err := errors.Join(second.cmd.Process.Signal(syscall.SIGTERM), second.wait(20*time.Second)); err != nil {
		t.Errorf("the second worker ended with %v: %s", err, second.said.String())
	}
}

// workerProcess is a worker of an example.
type workerProcess struct {
	cmd    *exec.Cmd
	said   *output
	exited chan error
}

func (p *post) start() *workerProcess {
	p.t.Helper()
	args := append(append([]string{}, p.command[1:]...), "--url", p.server.URL, "--tenant", platformtest.Tenant, "--concurrency", "8", "--lease", "1.5")
	w := &workerProcess{cmd: exec.Command(p.command[0], args...), said: &output{}, exited: make(chan error, 1)}
	w.cmd.Env = append(os.Environ(), "SOUS_KEY="+p.key)
	w.cmd.Stderr = w.said
	if err := w.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		w.exited <- w.cmd.Wait()
		close(ended)
	}()
	p.t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // it may have ended
		<-ended
		if p.t.Failed() {
			p.t.Logf("the worker said:\n%s", w.said.String())
		}
	})
	return w
}

func (w *workerProcess) wait(within time.Duration) error {
	select {
	case err := <-w.exited:
		return err
	case <-time.After(within):
		return fmt.Errorf("it runs on after %s", within)
	}
}

// output gathers what a process writes while a test reads it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
