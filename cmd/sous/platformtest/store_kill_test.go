package platformtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/storage/storagetest"
)

// The load of TestKilledStoreLosesNothing, beside the jobs of chaos.
const (
	storeKills      = 5
	callsPerSecond  = 200
	asyncPerSecond  = 10
	documentWriters = 4
	documentsEach   = 25 // of a writer
	documentPause   = 10 * time.Millisecond
	// storeAnswers is the longest time in which a call is to be answered, whatever
	// becomes of the store. It leaves a busy machine room for a hundred cold starts.
	storeAnswers = 30 * time.Second
	// storeResumes is the longest time from the store's restart to the first success.
	storeResumes = 10 * time.Second
)

// The store is killed five times at random under 20,000 jobs, writes of documents
// and 200 synchronous calls a second. Nothing that was accepted is lost, calls
// meanwhile are answered CS_STORE_UNAVAILABLE, and service resumes by itself.
//
// A minute on the store server that storagetest.StoreServerEnv names, less on the
// redis-server of every test run. Not parallel: it keeps the machine busy.
func TestKilledStoreLosesNothing(t *testing.T) {
	lasts := 25 * time.Second
	if os.Getenv(storagetest.StoreServerEnv) != "" {
		lasts = time.Minute
	}
	s := &storeStorm{chaos: startChaos(t, lasts), codes: map[string]int{}, web: &http.Transport{MaxIdleConnsPerHost: 100}}
	t.Cleanup(s.web.CloseIdleConnections)
	s.fails, s.patience = s.unavailable, storeAnswers
	for _, name := range []string{"work", "later"} {
		s.replicas[0].Publish(t, name, `{"timeout_ms": 3000, "memory_mb": 16, "max_concurrency": 100, "retry": {"max_attempts": 10}}`, map[string]string{
			"function.js": `export default () => new Promise((r) => setTimeout(() => r("done"), 50 * Math.random()));`,
		})
	}
	made := s.enqueue()
	var load sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	load.Go(func() { s.pace(ctx, time.Second/callsPerSecond, s.call) })
	load.Go(func() { s.pace(ctx, time.Second/asyncPerSecond, s.invoke) })
	for who := range documentWriters {
		w := &documentWriter{storeStorm: s, who: who, known: make([]document, documentsEach)}
		s.writers = append(s.writers, w)
		load.Go(func() { w.run(ctx) })
	}
	s.kills()
	stop()
	load.Wait()
	s.finish(<-made)
	s.activations()
	for _, w := range s.writers {
		w.verify()
	}
	s.answers()
}

// storeStorm is a chaos in which only the store is killed.
type storeStorm struct {
	*chaos
	web     *http.Transport
	writers []*documentWriter

	mu       sync.Mutex
	codes    map[string]int // how often calls were answered so
	wrong    []string       // answers that no caller should have had
	calls    int
	busy     int      // calls that were refused before they ran
	ended    []string // activations whose calls were answered with success
	accepted []string // asynchronous activations that were accepted
}

// unavailable notes an error that a call was answered with, and holds it to the
// contract. It always allows the caller to repeat the call.
func (s *storeStorm) unavailable(err error) bool {
	answer := (*client.ResponseError)(nil)
	errors.As(err, &answer)
	retry := answer != nil && answer.Status == http.StatusServiceUnavailable && answer.Err.RetryAfter > 0
	if retry && answer.Err.Code == api.CodeOverloaded {
		s.refused()
		return true
	}
	s.note(retry && answer.Err.Code == api.CodeStoreUnavailable, func() string { return err.Error() })
	return true
}

// refused notes a call that was refused before it ran: the machine is too slow for the load, or
// all requests that waited for the store go on at once.
func (s *storeStorm) refused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy++
}

func (s *storeStorm) note(fine bool, what func() string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fine {
		s.codes[string(api.CodeStoreUnavailable)]++
		return
	}
	s.codes["other"]++
	s.wrong = append(s.wrong, what())
}

// pace begins a call every so often, however long each takes, and waits for all.
func (s *storeStorm) pace(ctx context.Context, every time.Duration, call func(ctx context.Context, n int)) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	var calls sync.WaitGroup
	defer calls.Wait()
	begin, begun := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		for ; time.Duration(begun)*every < time.Since(begin); begun++ { // a late tick is for several
			n := begun
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeAnswers)
				defer cancel()
				call(ctx, n)
			})
		}
	}
}

// call makes a synchronous call of the function.
func (s *storeStorm) call(ctx context.Context, n int) {
	url := s.replicas[n%2].URL + "/v1/web/" + platformtest.Tenant + "/" + platformtest.Namespace + "/work/prod"
	s.mu.Lock()
	s.calls++
	s.mu.Unlock()
	answer, err := get(ctx, &http.Client{Transport: s.web}, url)
	if err == nil && answer.Status == http.StatusOK {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended = append(s.ended, answer.ActivationID)
		return
	}
	unavailable := err == nil && answer.Status == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") != ""
	code := api.Code(answer.Code())
	if code == api.CodeConcurrencyLimit || code == api.CodeCapacityLimit || unavailable && code == api.CodeOverloaded {
		s.refused()
		return
	}
	s.note(unavailable && code == api.CodeStoreUnavailable, func() string { return fmt.Sprintf("call %d: %v %d %s", n, err, answer.Status, answer.Body) })
}

func get(ctx context.Context, c *http.Client, url string) (a platformtest.Answer, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return a, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return a, err
	}
	body, err := io.ReadAll(resp.Body)
	return platformtest.Answer{
		Status: resp.StatusCode, ActivationID: resp.Header.Get("x-cs-activation-id"), Body: string(body), Header: resp.Header,
	}, errors.Join(err, resp.Body.Close())
}

// invoke has a function run asynchronously.
func (s *storeStorm) invoke(ctx context.Context, n int) {
	out, err := s.namespace(n%2).Function("later").Enqueue(ctx, client.InvokeOptions{Ref: api.Ref{Alias: "prod"}, Event: json.RawMessage(`1`)})
	if err != nil {
		s.unavailable(err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted = append(s.accepted, out.ActivationID)
}

// kills kills the store at random, once in each part of the storm, and waits after
// each restart until every kind of call succeeds again.
func (s *storeStorm) kills() {
	t, part := s.t, s.lasts/storeKills
	var slowest time.Duration
	for begin, n := time.Now(), 0; n < storeKills && !t.Failed(); n++ {
		end := begin.Add(time.Duration(n+1) * part)
		<-time.After(rand.N(part / 2))
		s.store.Kill()
		<-time.After(rand.N(time.Second))
		s.store.Start(t)
		restarted := time.Now()
		for replica := range s.replicas {
			platformtest.Eventually(t, storeResumes, "service resumes", func() error { return s.serves(replica) })
		}
		slowest = max(slowest, time.Since(restarted))
		<-time.After(time.Until(end))
	}
	t.Logf("service resumed at most %s after the store", slowest)
}

// serves makes one call of each kind.
func (s *storeStorm) serves(replica int) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), storeAnswers)
	defer cancel()
	answer, err := s.replicas[replica].Web(ctx, "work", nil)
	if err == nil && answer.Status != http.StatusOK {
		err = errors.New(answer.Body)
	}
	if err != nil {
		return err
	}
	if _, err := s.namespace(replica).Queue("probe").Enqueue(ctx, "", api.NewJob{Payload: json.RawMessage(`1`)}); err != nil {
		return err
	}
	if _, err := s.namespace(replica).FetchJobs(ctx, api.FetchRequest{Queues: []string{"probe"}, WorkerID: "probe", Count: 1}); err != nil {
		return err
	}
	_, err = s.install(replica).PutDocument(ctx, api.DocumentPut{Namespace: "probe", DocumentItem: api.DocumentItem{Key: "probe", Value: json.RawMessage(`1`)}})
	return err
}

func (s *storeStorm) install(replica int) *client.Install {
	return s.clients[replica].Tenant(platformtest.Tenant).Install("shop")
}

// activations verifies those that were answered for: each has its record.
func (s *storeStorm) activations() {
	t := s.t
	t.Helper()
	t.Logf("%d of %d synchronous calls were answered with success, %d asynchronous ones accepted", len(s.ended), s.calls, len(s.accepted))
	if want := int(s.lasts/time.Second) * callsPerSecond * 9 / 10; s.calls < want {
		t.Errorf("got %d synchronous calls, want %d at least", s.calls, want)
	}
	if s.busy > s.calls/10 {
		t.Errorf("%d of %d calls were refused before they ran, want fewer", s.busy, s.calls)
	}
	var readers sync.WaitGroup
	ids := make(chan string)
	for range 4 {
		readers.Go(func() {
			for id := range ids {
				a, err := s.clients[0].Tenant(platformtest.Tenant).Activation(t.Context(), id)
				if err != nil || a.Status != api.StatusSuccess || a.EndMS == 0 {
					t.Errorf("activation %s, whose call was answered with success: got %+v and error %v, want an ended record with status %s", id, a, err, api.StatusSuccess)
				}
			}
		})
	}
	for _, id := range s.ended {
		ids <- id
	}
	close(ids)
	readers.Wait()
	platformtest.Eventually(t, time.Minute, "all asynchronous activations succeed", func() error {
		return countStatus(t.Context(), s.clients[0].Tenant(platformtest.Tenant), s.accepted, api.StatusSuccess)
	})
}

// answers verifies the errors that callers had.
func (s *storeStorm) answers() {
	t := s.t
	t.Helper()
	t.Logf("answers but success: %v; the workers': %v", s.codes, s.failures)
	if len(s.wrong) > 0 {
		t.Errorf("got %d answers such as %q, want 503 %s with Retry-After", len(s.wrong), s.wrong[:min(len(s.wrong), 10)], api.CodeStoreUnavailable)
	}
	delete(s.failures, "0 none") // a worker has a shorter timeout than other callers
	for answer, n := range s.failures {
		code, unavailable := strings.CutPrefix(answer, fmt.Sprint(http.StatusServiceUnavailable, " "))
		if c := api.Code(code); !unavailable || c != api.CodeStoreUnavailable && c != api.CodeOverloaded {
			t.Errorf("workers got the answer %s %d times, want 0", answer, n)
		}
	}
	if s.codes[string(api.CodeStoreUnavailable)] < storeKills {
		t.Errorf("%d calls met an outage, want more", s.codes[string(api.CodeStoreUnavailable)])
	}
}

// documentWriter writes documents of its own, each on the revision that it knows.
type documentWriter struct {
	*storeStorm
	who   int
	known []document
	wrote int
}

// document is a writer's knowledge of one of its documents.
type document struct {
	revision int64    // that its last accepted write was answered
	value    string   // that it wrote
	unknown  []string // values of later writes, whose outcome is not known
}

const stormNamespace = "storm"

func (w *documentWriter) key(n int) string { return fmt.Sprintf("writer %d, %02d", w.who, n) }

func (w *documentWriter) run(ctx context.Context) {
	ticks := time.NewTicker(documentPause)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			w.write(ctx)
		}
	}
}

// write writes one document. Where it does not know the document's revision, it
// reads it first.
func (w *documentWriter) write(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeAnswers)
	defer cancel()
	w.wrote++
	n, replica := w.wrote%documentsEach, w.wrote%2
	d := &w.known[n]
	if len(d.unknown) > 0 {
		found, err := w.find(ctx, replica, n)
		if err != nil {
			w.unavailable(err)
			return
		}
		if err := d.settle(found); err != nil {
			w.t.Errorf("document %q: %v", w.key(n), err)
			*d = document{revision: found.Revision, value: string(found.Value)}
		}
	}
	value := fmt.Sprint(w.wrote)
	out, err := w.install(replica).PutDocument(ctx, api.DocumentPut{
		Namespace: stormNamespace, DocumentItem: api.DocumentItem{Key: w.key(n), Value: json.RawMessage(value), IfRevision: &d.revision},
	})
	if err != nil {
		w.unavailable(err)
		d.unknown = append(d.unknown, value)
		return
	}
	if out.Revision != d.revision+1 {
		w.t.Errorf("put of document %q: got revision %d, want %d", w.key(n), out.Revision, d.revision+1)
	}
	d.revision, d.value = out.Revision, value
}

// find reads a document; revision 0 is none.
func (w *documentWriter) find(ctx context.Context, replica, n int) (api.Document, error) {
	found, err := w.install(replica).Document(ctx, api.DocumentGet{Namespace: stormNamespace, Key: w.key(n)})
	if api.ErrorCode(err) == api.CodeDocumentNotFound {
		err = nil
	}
	return found, err
}

// settle holds what was found to what may be there, and takes it as known.
func (d *document) settle(found api.Document) error {
	value := string(found.Value)
	switch {
	case found.Revision == d.revision && value == d.value:
	case found.Revision == d.revision+1 && slices.Contains(d.unknown, value):
	default:
		return fmt.Errorf("got %s at revision %d, want %q at %d, or one of %q at the next", value, found.Revision, d.value, d.revision, d.unknown)
	}
	*d = document{revision: found.Revision, value: value}
	return nil
}

// verify holds every document, and the list of them, to what was accepted.
func (w *documentWriter) verify() {
	t := w.t
	t.Helper()
	listed := map[string]string{}
	page, err := w.install(1).Documents(t.Context(), api.DocumentList{Namespace: stormNamespace, KeyPrefix: fmt.Sprintf("writer %d,", w.who), IncludeValues: true})
	if err != nil {
		t.Fatalf("Documents: %v", err)
	}
	for _, item := range page.Items {
		listed[item.Key] = string(item.Value)
	}
	accepted := int64(0)
	for n := range w.known {
		found, err := w.find(t.Context(), 0, n)
		if err != nil {
			t.Fatalf("find: %v", err)
		}
		if err := w.known[n].settle(found); err != nil {
			t.Errorf("document %q: %v", w.key(n), err)
		}
		if listed[w.key(n)] != string(found.Value) {
			t.Errorf("document %q: list has %q, get has %s, want both equal", w.key(n), listed[w.key(n)], found.Value)
		}
		accepted += found.Revision
	}
	t.Logf("writer %d: %d of %d writes were made", w.who, accepted, w.wrote)
}
