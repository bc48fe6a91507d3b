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
			t.Fatalf("os.Stat: %v", err)
		}
	}
	testWorker(t, python, "-B", "worker-python/worker.py") // -B: write no bytecode files here
}

func TestWorkerGo(t *testing.T) {
	t.Parallel()
	testWorker(t, sandboxtest.Build(t, "github.com/codesous/sous/examples/worker-go"))
}

// post is a server with API keys and a queue of letters.
type post struct {
	t       *testing.T
	config  platformtest.Config
	server  *platformtest.Server
	command []string
	key     string // of the worker
}

// testWorker lets the worker execute jobs of every kind, lose its server, and stop
// while jobs are in progress.
func testWorker(t *testing.T, command ...string) {
	store := storagetest.Redis(t, "--appendonly", "yes")
	p := &post{t: t, config: platformtest.Config{Store: store.URL, Key: platformtest.Bootstrap(t, store.URL)}, command: command}
	p.server = p.config.Serve(t)
	made, err := p.tenant().CreateKey(t.Context(), client.NewKey{
		Name: "post", Roles: []string{"worker"}, Namespace: platformtest.Namespace,
	})
	if err != nil {
		t.Fatalf("CreateKey: %v", err)
	}
	p.key = made.Secret
	w := p.start()
	p.delivers(w)
	p.outlives(w)
	p.stops(w)
	if said := w.said.String(); strings.Contains(said, "sous_") {
		t.Errorf("worker's output: got its key in %s, want no key", said)
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
		p.t.Fatalf("Enqueue: %v", err)
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
		p.t.Fatalf("Job: %v", err)
	}
	return job
}

// await waits until ok accepts the job, and returns the job.
func (p *post) await(what, id string, ok func(api.Job) bool) (job api.Job) {
	p.t.Helper()
	platformtest.Eventually(p.t, 30*time.Second, what, func() error {
		job = p.job(id)
		if !ok(job) {
			return fmt.Errorf("job %s: got state %s, progress %s, payload %s", id, job.State, job.Progress, job.Payload)
		}
		return nil
	})
	return job
}

func in(state api.JobState) func(api.Job) bool {
	return func(j api.Job) bool { return j.State == state }
}

// letters returns n payloads with the given number of pages.
func letters(n, pages int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`{"to": "reader-%d@example.com", "pages": %d}`, i, pages)
	}
	return out
}

// delivers checks that the worker sends 100 letters. One of them is retried, one has
// no valid address, and one is cancelled while it is sent.
func (p *post) delivers(w *workerProcess) {
	t := p.t
	ids := p.enqueue(append(letters(97, 1), `{"to": "ada@busy.example"}`, `{"to": "nowhere"}`, `{"to": "long@example.com", "pages": 100000}`)...)
	long := ids[99]
	p.await("the progress of the long letter is reported", long, func(j api.Job) bool {
		return j.State == api.JobActive && bytes.Contains(j.Progress, []byte(`"total":100000`)) && len(j.Checkpoint) > 0
	})
	if _, err := p.tenant().CancelJob(t.Context(), long); err != nil {
		t.Fatalf("CancelJob: %v", err)
	}
	platformtest.Eventually(t, 20*time.Second, "the worker notices the cancellation", func() error {
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
			t.Errorf("job %s: got result %s after %d attempts, errors %v (decode: %v); want a letter to %s after %d attempts", job.Payload, job.Result, job.Attempt, job.Errors, err, to, attempts)
		}
	}
	p.await("the letter without an address is dead", ids[98], in(api.JobDead))
	if job := p.job(ids[98]); job.DeadReason != api.DeadFatal || len(job.Errors) != 1 || job.Errors[0].Error != "nowhere is no address" {
		t.Errorf("job to nowhere: got dead reason %q and errors %+v, want %q and the error \"nowhere is no address\"", job.DeadReason, job.Errors, api.DeadFatal)
	}
	if job := p.job(long); job.State != api.JobCancelled || job.Attempt != 1 {
		t.Errorf("cancelled job: got state %s at attempt %d, want %s at attempt 1", job.State, job.Attempt, api.JobCancelled)
	}
}

// outlives checks that the worker continues its jobs after the server was killed and
// started again.
func (p *post) outlives(w *workerProcess) {
	ids := p.enqueue(letters(5, 30)...)
	for _, id := range ids {
		p.await("the letter is begun", id, in(api.JobActive))
	}
	if err := p.server.Kill(); err != nil {
		p.t.Fatalf("Kill: %v", err)
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

// stops checks that a worker that is stopped finishes the jobs in progress and leaves
// all others.
func (p *post) stops(w *workerProcess) {
	t := p.t
	ids := p.enqueue(letters(200, 10)...) // more than are sent until the signal comes
	p.await("the work is under way", ids[15], in(api.JobCompleted))
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("Signal: %v", err)
	}
	if err := w.wait(20 * time.Second); err != nil {
		t.Fatalf("worker: got its end with error %v, want none; output %s", err, w.said.String())
	}
	states := map[string]int{}
	for _, id := range ids {
		// The server releases jobs that it has just handed out once it notices the end
		// of the connection, which may be after the end of the worker.
		job := p.await("the job is released", id, func(j api.Job) bool { return j.State != api.JobActive })
		state := "done"
		switch job.State {
		case api.JobCompleted:
		case api.JobPending, api.JobRetrying: // the job was released
			state, job.Attempt = "left", job.Attempt+1
		default:
			state = string(job.State)
		}
		states[state]++
		if job.Attempt != 1 || len(job.Errors) > 0 {
			t.Errorf("job %s in state %s: got attempt %d, errors %v; want attempt 1, no errors", id, job.State, job.Attempt, job.Errors)
		}
	}
	if states["done"] < 16 || states["left"] == 0 || states["done"]+states["left"] != len(ids) {
		t.Errorf("after the stop: got %v, want at least 16 done, the others left, %d in total", states, len(ids))
	}
	second := p.start()
	for _, id := range ids {
		p.await("a second worker completes the job", id, in(api.JobCompleted))
	}
	if err := errors.Join(second.cmd.Process.Signal(syscall.SIGTERM), second.wait(20*time.Second)); err != nil {
		t.Errorf("second worker: got its end with error %v, want none; output %s", err, second.said.String())
	}
}

// workerProcess is a running worker of an example.
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
		p.t.Fatalf("Start: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		w.exited <- w.cmd.Wait()
		close(ended)
	}()
	p.t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // the process may have ended
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
		return fmt.Errorf("the worker is still running after %s", within)
	}
}

// output collects the output of a process; a test can read it concurrently.
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
