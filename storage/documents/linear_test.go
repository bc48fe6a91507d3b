package documents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/storagetest"
)

// documentCall reads a document, or puts value where it is at revision and succeeds;
// documentAnswer is what the document is then.
type documentCall struct {
	put             bool
	revision, value int64
}

type documentAnswer struct {
	revision, value int64
}

// documentModel is one document as a sequence of single steps.
var documentModel = porcupine.Model{
	Init: func() any { return documentAnswer{} },
	Step: func(before, call, answer any) (bool, any) {
		s, c, a := before.(documentAnswer), call.(documentCall), answer.(documentAnswer)
		if !c.put {
			return a == s, s
		}
		if c.revision != s.revision {
			return false, s
		}
		s = documentAnswer{revision: s.revision + 1, value: c.value}
		return a == s, s
	},
}

// twoDocuments are two clients of one redis-server, on one namespace.
func twoDocuments(t *testing.T) [2]*harness {
	t.Helper()
	return documentsOf(t, storagetest.Redis(t).URL)
}

// documentsOf are two processes' documents in one store.
func documentsOf(t *testing.T, url string) [2]*harness {
	t.Helper()
	one := newHarness(t, storagetest.Open(t, storage.Config{URL: url}))
	two := newHarness(t, storagetest.Open(t, storage.Config{URL: url}))
	two.path = one.path
	return [2]*harness{one, two}
}

// TestNoUpdateOfADocumentIsLost: 64 writers count one document up, each at the revision
// that it has read. What they see is what they would see one after another.
func TestNoUpdateOfADocumentIsLost(t *testing.T) {
	t.Parallel()
	clients := twoDocuments(t)
	const writers, times = 64, 3
	var mu sync.Mutex
	var history []porcupine.Operation
	begun := map[int64]time.Time{}   // revision → when the put began that replaced it
	refused := map[int64]time.Time{} // revision → when the first put at it was refused
	for _, err := range storagetest.Concurrently(writers, func(i int) error {
		d := clients[i%2]
		note := func(begin time.Time, c documentCall, a documentAnswer) {
			mu.Lock()
			defer mu.Unlock()
			history = append(history, porcupine.Operation{ClientId: i, Input: c, Output: a, Call: begin.UnixNano(), Return: time.Now().UnixNano()})
		}
		for done := 0; done < times; {
			begin := time.Now()
			seen, err := d.number("counter")
			if err != nil {
				return err
			}
			if i%8 == 0 { // the check takes too long with all of them
				note(begin, documentCall{}, seen)
			}
			c := documentCall{put: true, revision: seen.revision, value: seen.value + 1}
			begin = time.Now()
			out, err := d.write(having(c.revision, put("counter", strconv.FormatInt(c.value, 10))))
			switch {
			case api.ErrorCode(err) == api.CodeRevisionMismatch:
				mu.Lock()
				if first, known := refused[c.revision]; !known || time.Now().Before(first) {
					refused[c.revision] = time.Now()
				}
				mu.Unlock()
			case err != nil:
				return err
			default:
				done++
				mu.Lock()
				begun[c.revision] = begin
				mu.Unlock()
				note(begin, c, documentAnswer{revision: out[0].Revision, value: c.value})
			}
		}
		return nil
	}) {
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
	}
	if got, err := clients[0].number("counter"); err != nil || got.value != writers*times || got.revision != writers*times {
		t.Errorf("after %d increments: got %+v and error %v, want that value and revision", writers*times, got, err)
	}
	if got := porcupine.CheckOperationsTimeout(documentModel, history, 60*time.Second); got != porcupine.Ok {
		t.Errorf("history of %d calls: got %s, want %s", len(history), got, porcupine.Ok)
	}
	// Refusals are left out of the history, since their order is not defined.
	for revision, at := range refused {
		if by, replaced := begun[revision]; !replaced || by.After(at) {
			t.Errorf("put at revision %d: got it refused, want success: no later write had begun", revision)
		}
	}
	clients[0].audit("after all")
}

// number reads a document that holds a number; none is the zero answer.
func (d *harness) number(key string) (documentAnswer, error) {
	got, err := d.Get(d.t.Context(), d.path, key, d.now)
	if api.ErrorCode(err) == api.CodeDocumentNotFound {
		return documentAnswer{}, nil
	}
	if err != nil {
		return documentAnswer{}, err
	}
	n, err := strconv.ParseInt(string(got.Value), 10, 64)
	return documentAnswer{revision: got.Revision, value: n}, err
}

// TestTransfersKeepTheSum: transactions move what two documents hold from one to the other,
// while others read both at once.
func TestTransfersKeepTheSum(t *testing.T) {
	t.Parallel()
	clients := twoDocuments(t)
	clients[0].mustWrite(put("left", "1000"), put("right", "1000"))
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if sum, err := clients[1].sum(); err != nil || sum != 2_000 {
				t.Errorf("sum: got %d and error %v, want 2000 in every page", sum, err)
				return
			}
		}
	})
	var moved [16]int64
	for _, err := range storagetest.Concurrently(len(moved), func(i int) error {
		d := clients[i%2]
		for moved[i] < 10 {
			left, err1 := d.number("left")
			right, err2 := d.number("right")
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			_, err := d.write(having(left.revision, put("left", fmt.Sprint(left.value-1))), having(right.revision, put("right", fmt.Sprint(right.value+1))))
			switch {
			case err == nil:
				moved[i]++
			case api.ErrorCode(err) != api.CodeRevisionMismatch:
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("unexpected error: %v", err)
		}
	}
	close(stop)
	reader.Wait()
	if right, err := clients[0].number("right"); err != nil || right.value != 1_160 {
		t.Errorf("right after 160 moves: got %+v and error %v, want 1160", right, err)
	}
}

func (d *harness) sum() (sum int64, err error) {
	items, _, err := d.Page(d.t.Context(), d.path, documents.Query{Values: true}, d.now)
	for _, item := range items {
		var n int64
		err = errors.Join(err, json.Unmarshal(item.Value, &n))
		sum += n
	}
	return sum, err
}
