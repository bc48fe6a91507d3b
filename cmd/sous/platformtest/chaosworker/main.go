// Chaosworker is the worker that TestChaos kills and stops: it executes the jobs of
// one queue, and records which jobs it began and how the server answered.
//
//	chaosworker RECORD TENANT NAMESPACE QUEUE URL…
//
// RECORD is a file with one line for each event, of which the test reads
//
//	begin ID EPOCH     the handler was called for the job, under the lease with this epoch
//	ack ID EPOCH ok    the server accepted the result
//	ack ID EPOCH CODE  it refused the result, such as CS_JOB_LEASE_LOST
//	error STATUS CODE  a call failed; "error 0 none" if there was no answer
//
// The process ends with SIGTERM in order, and when its standard input ends, which is when the
// test process has ended.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/worker"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 5 {
		return errors.New("chaosworker RECORD TENANT NAMESPACE QUEUE URL…")
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // only its end matters
		os.Exit(2)                           // the test has ended and did not stop this process
	}()
	record, err := os.OpenFile(args[0], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	source := &replicas{record: record}
	for _, url := range args[4:] {
		c, err := client.New(url, client.Config{MaxAttempts: 1})
		if err != nil {
			return err
		}
		source.each = append(source.each, c.Tenant(args[1]).Namespace(args[2]))
	}
	w, err := worker.New(source, worker.Config{
		Concurrency: 16, Lease: 2 * time.Second, Wait: 2 * time.Second, StopTimeout: 10 * time.Second,
		OnError: func(err error) { fmt.Fprintln(os.Stderr, err) },
	})
	if err != nil {
		return err
	}
	w.Handle(args[3], func(ctx context.Context, j *worker.Job) error {
		if _, err := fmt.Fprintf(record, "begin %s %d\n", j.ID, j.LeaseEpoch); err != nil {
			return err
		}
		return work(ctx, j)
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return w.Run(ctx)
}

// work executes a job as its number says: most succeed within 20 ms; of each 200, one is dead,
// one fails and one panics at its first attempt, and one outlasts its lease, which the worker
// renews. The result has the epoch, so that the test sees which lease it is from.
func work(ctx context.Context, j *worker.Job) error {
	var n int
	if err := j.Decode(&n); err != nil {
		return err
	}
	takes := time.Duration(n%20) * time.Millisecond
	switch n % 200 {
	case 0:
		return worker.Fatal(errors.New("in vain"))
	case 1:
		if j.Attempt == 1 {
			return errors.New("fails first")
		}
	case 2:
		takes = 2500 * time.Millisecond // longer than a lease
	case 3:
		if j.Attempt == 1 {
			panic("panics first")
		}
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return j.Return(map[string]int64{"epoch": j.LeaseEpoch})
}

// replicas is a worker.Source over several servers: after an error it uses the next one. Its
// methods may be called concurrently.
type replicas struct {
	each   []worker.Source
	turn   atomic.Int64
	record *os.File
}

func (r *replicas) FetchJobs(ctx context.Context, f api.FetchRequest) ([]api.FetchedJob, error) {
	return ask(r, func(s worker.Source) ([]api.FetchedJob, error) { return s.FetchJobs(ctx, f) })
}

func (r *replicas) AckJobs(ctx context.Context, acks []api.JobAck) ([]api.JobOutcome, error) {
	outcomes, err := ask(r, func(s worker.Source) ([]api.JobOutcome, error) { return s.AckJobs(ctx, acks) })
	for i, o := range outcomes {
		said := string(o.Code)
		if o.OK {
			said = "ok"
		}
		if _, err := fmt.Fprintf(r.record, "ack %s %d %s\n", o.ID, acks[i].LeaseEpoch, said); err != nil {
			return nil, err
		}
	}
	return outcomes, err
}

func (r *replicas) FailJobs(ctx context.Context, fails []api.JobFail) ([]api.JobOutcome, error) {
	return ask(r, func(s worker.Source) ([]api.JobOutcome, error) { return s.FailJobs(ctx, fails) })
}

func (r *replicas) HeartbeatJobs(ctx context.Context, workerID string, beats []api.JobHeartbeat) ([]api.JobOutcome, error) {
	return ask(r, func(s worker.Source) ([]api.JobOutcome, error) { return s.HeartbeatJobs(ctx, workerID, beats) })
}

// ask calls the current server. Of several calls that fail on it at the same time, one moves
// on to the next server.
func ask[T any](r *replicas, call func(worker.Source) (T, error)) (T, error) {
	turn := r.turn.Load()
	out, err := call(r.each[int(turn)%len(r.each)])
	if err != nil {
		r.turn.CompareAndSwap(turn, turn+1)
		err = errors.Join(err, r.failed(err))
	}
	return out, err
}

// failed records the answer that err stands for. It records nothing for a call that the worker
// cancelled.
func (r *replicas) failed(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	status, code := 0, "none"
	if answer := (*client.ResponseError)(nil); errors.As(err, &answer) {
		status, code = answer.Status, string(answer.Err.Code)
	}
	_, err = fmt.Fprintf(r.record, "error %d %s\n", status, code)
	return err
}
