package queue_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// The calls whose histories are checked.
const (
	callEnqueue = iota
	callFetch
	callAck
	callContinue
	callFail
	callFatal
)

type linearCall struct {
	call  int
	job   int // the job that is settled
	epoch int64
}

// linearAnswer is the job that was made or fetched, -1 for none, with its epoch, or whether the
// lease was held.
type linearAnswer struct {
	job   int
	epoch int64
	ok    bool
}

const linearJobs = 48

// linearState is the state of every job: 0 if it does not exist, p pending, a active, e ended.
type linearState [linearJobs]struct {
	state   byte
	epoch   uint8
	settled string
}

// linearModel is a queue that handles one call at a time. A fetch may return any pending job:
// another test checks their order.
var linearModel = porcupine.Model{
	Init: func() any { return linearState{} },
	Step: func(before, call, answer any) (bool, any) {
		s, c, a := before.(linearState), call.(linearCall), answer.(linearAnswer)
		switch c.call {
		case callEnqueue:
			s[a.job].state = 'p'
			return before.(linearState)[a.job].state == 0, s
		case callFetch:
			if a.job < 0 {
				for _, j := range s {
					if j.state == 'p' {
						return false, s
					}
				}
				return true, s
			}
			j := &s[a.job]
			ok := j.state == 'p' && int64(j.epoch)+1 == a.epoch
			j.state, j.epoch = 'a', j.epoch+1
			return ok, s
		}
		j, kind := &s[c.job], "acff"[c.call-callAck]
		settled := fmt.Sprintf("%d%c", c.epoch, kind)
		if j.state != 'a' || int64(j.epoch) != c.epoch {
			return a.ok == (j.settled == settled), s
		}
		j.state, j.settled = 'e', settled
		if c.call == callContinue {
			j.state = 'p'
		}
		return a.ok, s
	},
}

// TestTheQueueIsLinearizable: the results of concurrent calls to two brokers are those of the same
// calls made one after another.
func TestTheQueueIsLinearizable(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		brokers := []*queue.Broker{brokerOn(t, s), brokerOn(t, s)}
		for range 15 {
			history := linearHistory(t, brokers, storagetest.Tenant(t))
			switch porcupine.CheckOperationsTimeout(linearModel, history, 20*time.Second) {
			case porcupine.Illegal:
				for _, op := range history {
					t.Logf("%d: %+v → %+v [%d, %d]", op.ClientId, op.Input, op.Output, op.Call, op.Return)
				}
				t.Fatal("the history is not linearizable")
			case porcupine.Unknown:
				t.Fatal("the check took too long")
			}
		}
	})
}

// linearClients is the state that the clients of one history share.
type linearClients struct {
	mu      sync.Mutex
	numbers map[string]int
	leases  []api.FetchedJob
	history []porcupine.Operation
}

func (l *linearClients) number(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.numbers[id]; !known {
		l.numbers[id] = len(l.numbers)
	}
	return l.numbers[id]
}

// note adds a call to the history.
func (l *linearClients) note(client int, begin time.Time, c linearCall, a linearAnswer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history = append(l.history, porcupine.Operation{
		ClientId: client, Input: c, Output: a, Call: begin.UnixNano(), Return: time.Now().UnixNano(),
	})
}

func linearHistory(t *testing.T, brokers []*queue.Broker, tenant string) []porcupine.Operation {
	t.Helper()
	l := &linearClients{numbers: map[string]int{}}
	var work sync.WaitGroup
	for client := range 6 {
		work.Go(func() {
			for range 16 {
				if err := l.step(t, brokers[client%len(brokers)], tenant, client); err != nil {
					t.Errorf("step: %v", err)
					return
				}
			}
		})
	}
	work.Wait()
	return l.history
}

func (l *linearClients) step(t *testing.T, b *queue.Broker, tenant string, client int) error {
	begin := time.Now()
	l.mu.Lock()
	known, leases := len(l.numbers), l.leases
	l.mu.Unlock()
	switch r := rand.IntN(10); {
	case r < 3 && known < linearJobs-6:
		out, err := b.Enqueue(t.Context(), queue.Enqueue{Tenant: tenant, Namespace: namespace, Queue: emails, Jobs: []api.NewJob{job(`1`)}})
		if err != nil {
			return err
		}
		l.note(client, begin, linearCall{call: callEnqueue}, linearAnswer{job: l.number(out[0].ID)})
	case r < 6 || len(leases) == 0:
		got, err := b.Fetch(t.Context(), queue.Fetch{Tenant: tenant, Namespace: namespace, Queues: []string{emails}, WorkerID: fmt.Sprint("w", client)})
		if err != nil {
			return err
		}
		a := linearAnswer{job: -1}
		if len(got) > 0 {
			a = linearAnswer{job: l.number(got[0].ID), epoch: got[0].LeaseEpoch}
		}
		l.note(client, begin, linearCall{call: callFetch}, a)
		l.mu.Lock()
		l.leases = append(l.leases, got...)
		l.mu.Unlock()
	default:
		lease := leases[len(leases)-1-rand.IntN(min(4, len(leases)))]
		c := linearCall{call: callAck + rand.IntN(4), job: l.number(lease.ID), epoch: lease.LeaseEpoch}
		out, err := settleLinear(t, b, tenant, c.call, lease)
		if err != nil {
			return err
		}
		if !out[0].OK && out[0].Code != api.CodeJobLeaseLost {
			return fmt.Errorf("%+v", out[0])
		}
		l.note(client, begin, c, linearAnswer{ok: out[0].OK})
	}
	return nil
}

func settleLinear(t *testing.T, b *queue.Broker, tenant string, call int, lease api.FetchedJob) ([]api.JobOutcome, error) {
	switch call {
	case callAck, callContinue:
		return b.Ack(t.Context(), tenant, []api.JobAck{{ID: lease.ID, LeaseEpoch: lease.LeaseEpoch, Continue: call == callContinue}})
	}
	return b.Fail(t.Context(), tenant, []api.JobFail{{ID: lease.ID, LeaseEpoch: lease.LeaseEpoch, Fatal: call == callFatal, Error: "broke"}})
}
