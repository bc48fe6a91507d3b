package platformtest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
	"github.com/codesous/sous/storage/storagetest"
)

// What TestChaos does.
const (
	chaosFor     = 60 * time.Second
	chaosJobs    = 20_000
	chaosPerCall = 20 // jobs of an enqueue
	chaosQueue   = "storm"
	// frozenFor is longer than a lease of chaosworker.
	frozenFor = 3 * time.Second
)

// Servers and workers are killed and frozen at random for a minute, and the store
// once, while 20,000 jobs are added. Each job is done: completed by exactly one
// lease, or dead for the reason that its worker gave. The receiver of a webhook is killed too. The
// followers of the event log miss and repeat no event, each event is delivered to the receiver, and
// every row of the mirrors equals its record.
//
// Not parallel: the other tests hold answers to a time.
func TestChaos(t *testing.T) {
	c := startChaos(t, chaosFor, "--roles", "api,invoker,scheduler,cadence,mirror", "--egress-allow", "127.0.0.0/8", "--secrets-key-file", secretsKey(t))
	watch := c.watch()
	made := c.enqueue()
	c.rage(watch.receiver)
	c.finish(<-made)
	watch.verify()
	if c.again < chaosJobs/200 {
		t.Errorf("%d jobs began more than once, want more", c.again)
	}
	if c.refused.Load() == 0 {
		t.Error("0 acks were refused, want at least 1")
	}
}

// chaosRandom returns the test's randomness, which SOUS_CHAOS_SEED repeats.
func chaosRandom(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SOUS_CHAOS_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("strconv.ParseUint: %v", err)
		}
	}
	t.Logf("SOUS_CHAOS_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// finish waits for the end of all jobs, stops the workers, and verifies the jobs.
func (c *chaos) finish(ids []string) {
	t := c.t
	t.Helper()
	if t.Failed() {
		return
	}
	platformtest.Eventually(t, 60*time.Second, "all jobs have ended", func() error {
		queue, err := c.namespace(0).Queue(chaosQueue).Get(t.Context())
		if err != nil {
			return err
		}
		for _, state := range api.JobStates() {
			if n := queue.Depths[state]; n > 0 && !state.Terminal() {
				return fmt.Errorf("%d are %s", n, state)
			}
		}
		return nil
	})
	for _, w := range c.workers {
		if err := w.stop(); err != nil {
			t.Errorf("end of a worker: %v, want no error\n%s", err, w.said.String())
		}
	}
	c.verify(ids)
}

// chaos is two replicas over a store that keeps every write, and four workers.
type chaos struct {
	t        *testing.T
	random   *rand.Rand
	store    *storagetest.Server
	config   platformtest.Config
	replicas [2]*platformtest.Server
	mirrors  [2]string // the folders of the replicas
	clients  [2]*client.Client
	// transports are those of clients.
	transports [2]*http.Transport
	workers    [4]*chaosWorker
	dir        string // of the workers' records
	begun      int    // workers so far
	replayed   atomic.Int64
	refused    atomic.Int64
	patience   time.Duration // for an answer to an enqueue
	again      int           // jobs that were begun more than once
	lasts      time.Duration // how long the storm is
	// fails reports whether an error may end a call, which is then repeated.
	fails func(error) bool
	// failures are the error answers that workers had: "STATUS CODE", and how often.
	failures map[string]int
}

func startChaos(t *testing.T, lasts time.Duration, args ...string) *chaos {
	t.Helper()
	c := &chaos{t: t, random: chaosRandom(t), lasts: lasts, patience: 5 * time.Second, fails: chaosFails, failures: map[string]int{}, dir: t.TempDir()}
	c.store = storagetest.DurableServer(t)
	c.config = platformtest.Config{Store: c.store.URL, Args: args}
	for i := range c.replicas {
		c.mirrors[i] = t.TempDir()
		c.replicas[i] = c.configOf(i).Serve(t)
		c.transports[i] = &http.Transport{}
		t.Cleanup(c.transports[i].CloseIdleConnections)
		var err error
		c.clients[i], err = client.New(c.replicas[i].URL, client.Config{MaxAttempts: 1, Transport: c.transports[i]})
		if err != nil {
			t.Fatalf("New: %v", err)
		}
	}
	for i := range c.workers {
		c.workers[i] = c.startWorker()
	}
	return c
}

// configOf returns the configuration of a replica, which keeps its address and its mirror.
func (c *chaos) configOf(i int) platformtest.Config {
	config := c.config
	config.Args = append(slices.Clone(config.Args), "--mirror-dir", c.mirrors[i])
	if c.replicas[i] != nil {
		config.Listen = strings.TrimPrefix(c.replicas[i].URL, "http://")
	}
	return config
}

func (c *chaos) namespace(replica int) *client.Namespace {
	return c.clients[replica].Tenant(platformtest.Tenant).Namespace(platformtest.Namespace)
}

// chaosFails allows what a caller of replicas that are killed meets.
func chaosFails(err error) bool {
	var gone *client.UnreachableError
	code := api.ErrorCode(err)
	return errors.As(err, &gone) || code == api.CodeStoreUnavailable || code == api.CodeShuttingDown || errors.Is(err, context.DeadlineExceeded)
}

// chaosWorker is a process of chaosworker.
type chaosWorker struct {
	cmd  *exec.Cmd
	hold io.WriteCloser // the process ends when this closes
	said *bytes.Buffer  // to be read after its end
}

func (c *chaos) startWorker() *chaosWorker {
	c.t.Helper()
	c.begun++
	args := []string{filepath.Join(c.dir, strconv.Itoa(c.begun)), platformtest.Tenant, platformtest.Namespace, chaosQueue}
	for _, r := range c.replicas {
		args = append(args, r.URL)
	}
	w := &chaosWorker{said: &bytes.Buffer{}}
	w.cmd = exec.Command(sandboxtest.Build(c.t, "github.com/codesous/sous/cmd/sous/platformtest/chaosworker"), args...)
	w.cmd.Stderr = w.said
	var err error
	w.hold, err = w.cmd.StdinPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		c.t.Fatalf("StdinPipe: %v", err)
	}
	c.t.Cleanup(w.kill)
	return w
}

func (w *chaosWorker) kill() {
	_ = w.cmd.Process.Kill() // it may have ended
	_ = w.cmd.Wait()
}

// freeze stops the process for longer than its leases last: it goes on in the
// belief that it holds them.
func (w *chaosWorker) freeze() {
	_ = w.cmd.Process.Signal(syscall.SIGSTOP)
	time.AfterFunc(frozenFor, func() { _ = w.cmd.Process.Signal(syscall.SIGCONT) }) // it may have been killed
}

// stop ends the process as a deployment does.
func (w *chaosWorker) stop() error {
	err := errors.Join(w.cmd.Process.Signal(syscall.SIGCONT), w.cmd.Process.Signal(syscall.SIGTERM))
	late := time.AfterFunc(30*time.Second, func() { _ = w.cmd.Process.Kill() })
	defer late.Stop()
	return errors.Join(err, w.cmd.Wait())
}

// rage kills and freezes until the time is up.
func (c *chaos) rage(receiver *chaosReceiver) {
	begin, restarted := time.Now(), false
	did := map[string]int{}
	for ever := time.NewTicker(700 * time.Millisecond); time.Since(begin) < c.lasts && !c.t.Failed(); <-ever.C {
		if !restarted && time.Since(begin) > c.lasts/2 {
			restarted = true
			c.store.Kill()
			c.store.Start(c.t)
		}
		i := c.random.IntN(len(c.workers))
		switch c.random.IntN(9) {
		case 0, 1, 2:
			did["workers killed"]++
			c.workers[i].kill()
			c.workers[i] = c.startWorker()
		case 3, 4:
			did["workers frozen"]++
			c.workers[i].freeze()
		case 5:
			did["receiver killed"]++
			receiver.kill()
			receiver.start(c.t)
		default:
			did["replicas killed"]++
			i %= len(c.replicas)
			if err := c.replicas[i].Kill(); err != nil {
				c.t.Fatalf("Kill: %v", err)
			}
			c.replicas[i] = c.configOf(i).Serve(c.t)
		}
	}
	c.t.Log(did)
}

// enqueue adds the jobs while faults are injected, and returns the ids of all jobs by
// their number.
func (c *chaos) enqueue() <-chan []string {
	out := make(chan []string, 1)
	ids := make([]string, chaosJobs)
	const producers, calls = 2, chaosJobs / chaosPerCall
	var work sync.WaitGroup
	for who := range producers {
		work.Go(func() {
			pace := time.NewTicker(c.lasts * 8 / 10 * producers / calls)
			defer pace.Stop()
			for call := who; call < calls && !c.t.Failed(); call += producers {
				<-pace.C
				c.enqueueOnce(call, ids[call*chaosPerCall:][:chaosPerCall])
			}
		})
	}
	c.t.Cleanup(work.Wait)
	go func() {
		work.Wait()
		out <- ids
	}()
	return out
}

// enqueueOnce makes one call until it is answered, and every tenth once more: what
// was added before must be what it is answered.
func (c *chaos) enqueueOnce(call int, ids []string) {
	jobs := make([]api.NewJob, len(ids))
	delay := int64(200)
	for k := range jobs {
		jobs[k].Payload = fmt.Append(nil, call*chaosPerCall+k)
		jobs[k].MaxAttempts, jobs[k].Backoff, jobs[k].BaseDelayMS = 50, api.BackoffFixed, &delay
	}
	for answered, try := 0, call; (answered < 1 || answered == 1 && call%10 == 0) && c.t.Context().Err() == nil; try++ {
		ctx, cancel := context.WithTimeout(c.t.Context(), c.patience)
		made, err := c.namespace(try%2).Queue(chaosQueue).Enqueue(ctx, fmt.Sprint("call-", call), jobs...)
		cancel()
		switch {
		case err == nil:
		case c.t.Context().Err() != nil:
			return // the test has failed
		case c.fails(err):
			time.Sleep(20 * time.Millisecond) // the pause between two attempts
			continue
		default:
			c.t.Errorf("call %d: got error %v, want success or an outage", call, err)
			return
		}
		for k, job := range made {
			if job.Replayed {
				c.replayed.Add(1)
			}
			ids[k] = cmp.Or(ids[k], job.ID)
			if ids[k] != job.ID || answered == 1 && !job.Replayed {
				c.t.Errorf("call %d = %+v, want the job %s of the first call", call, job, ids[k])
			}
		}
		answered++
	}
}

// deed is the record that the workers wrote about a job.
type deed struct {
	begun []int64 // epochs
	acked []int64 // epochs whose ack was answered with success
}

func (c *chaos) deeds() map[string]*deed {
	c.t.Helper()
	out := map[string]*deed{}
	for n := range c.begun {
		raw, err := os.ReadFile(filepath.Join(c.dir, strconv.Itoa(n+1)))
		if err != nil && !os.IsNotExist(err) { // killed before it could begin
			c.t.Fatalf("read the record of job %d: %v", n+1, err)
		}
		for line := range strings.Lines(string(raw)) {
			words := strings.Fields(line)
			if words[0] == "error" {
				c.failures[words[1]+" "+words[2]]++
				continue
			}
			epoch, err := strconv.ParseInt(words[2], 10, 64)
			if err != nil {
				c.t.Fatalf("record of a worker: line %q: %v, want an epoch as its third word", line, err)
			}
			d := out[words[1]]
			if d == nil {
				d = &deed{}
				out[words[1]] = d
			}
			switch {
			case words[0] == "begin":
				d.begun = append(d.begun, epoch)
			case words[3] == "ok":
				d.acked = append(d.acked, epoch)
			case words[3] == string(api.CodeJobLeaseLost):
				c.refused.Add(1)
			default:
				c.t.Errorf("a worker got the answer %s, want none", line)
			}
		}
	}
	return out
}

// verify holds the store's jobs to what was added and to what the workers saw.
func (c *chaos) verify(ids []string) {
	t, deeds := c.t, c.deeds()
	numbers := map[string]int{}
	for n, id := range ids {
		numbers[id] = n
	}
	found := 0
	for _, state := range []api.JobState{api.JobCompleted, api.JobDead, api.JobCancelled} {
		list := func(ctx context.Context, o client.PageOptions) (api.Page[api.Job], error) {
			return c.namespace(1).Queue(chaosQueue).Jobs(ctx, client.JobFilter{State: state}, o)
		}
		for job, err := range client.All(t.Context(), list, client.PageOptions{Limit: 200}) {
			if err != nil {
				t.Fatalf("list the jobs: %v", err)
			}
			found++
			n, known := numbers[job.ID]
			d := deeds[job.ID]
			if !known || string(job.Payload) != strconv.Itoa(n) || d == nil {
				t.Fatalf("job %+v is in the queue, want only jobs that were enqueued", job)
			}
			delete(numbers, job.ID)
			if len(d.begun) > 1 {
				c.again++
			}
			if err := c.consistent(n, &job, d); err != nil {
				t.Errorf("job %d (%s) contradicts the workers' record %+v: %v", n, job.ID, d, err)
			}
		}
	}
	if found != chaosJobs || len(numbers) > 0 {
		t.Errorf("found %d jobs, want %d; %d are lost", found, chaosJobs, len(numbers))
	}
	t.Logf("%d begun more than once, %d acks refused, %d jobs added again", c.again, c.refused.Load(), c.replayed.Load())
}

func (c *chaos) consistent(n int, job *api.Job, d *deed) error {
	if n%200 == 0 {
		if job.State != api.JobDead || job.DeadReason != api.DeadFatal || len(d.acked) > 0 {
			return fmt.Errorf("%s %s, want dead", job.State, job.DeadReason)
		}
		whole, err := c.clients[0].Tenant(platformtest.Tenant).Job(c.t.Context(), job.ID)
		if err == nil && !slices.ContainsFunc(whole.Errors, func(e api.JobError) bool { return e.Error == "in vain" }) {
			err = fmt.Errorf("its errors are %+v", whole.Errors)
		}
		return err
	}
	var result struct {
		Epoch int64 `json:"epoch"`
	}
	if err := json.Unmarshal(job.Result, &result); err != nil || job.State != api.JobCompleted {
		return fmt.Errorf("%s %s %w", job.State, job.Result, err)
	}
	switch {
	case len(d.acked) > 1, len(d.acked) == 1 && d.acked[0] != result.Epoch:
		return fmt.Errorf("its result is of epoch %d", result.Epoch)
	case slices.Max(d.begun) > result.Epoch:
		return fmt.Errorf("it ran again after its end in epoch %d", result.Epoch)
	}
	return nil
}
