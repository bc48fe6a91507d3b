package admission_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/admission"
)

// A client may send a second's requests at once, waits up to 250 ms for further ones, and is refused
// beyond that until its rate has room again.
func TestRates(t *testing.T) {
	t.Parallel()
	r := admission.NewRates(admission.RateConfig{Reads: 100, Writes: 10})
	at := time.UnixMilli(1_760_000_000_000)
	client := admission.Client{Tenant: "t_acme01", Key: "k1"}
	for i := range 10 {
		if wait, err := r.Take(client, true, at); wait != 0 || err != nil {
			t.Fatalf("write %d: got a wait of %s and error %v, want neither", i, wait, err)
		}
	}
	for i := range 2 {
		want := time.Duration(i+1) * 100 * time.Millisecond
		if wait, err := r.Take(client, true, at); wait != want || err != nil {
			t.Errorf("write %d: got a wait of %s and error %v, want %s", 10+i, wait, err, want)
		}
	}
	for range 3 { // a refused request takes no place
		_, err := r.Take(client, true, at)
		var coded *api.Error
		if !errors.As(err, &coded) || coded.Code != api.CodeCapacityLimit || coded.RetryAfter != 300*time.Millisecond || !strings.Contains(coded.Message, "API key") {
			t.Errorf("a write too many: got error %v, want %s after 300ms", err, api.CodeCapacityLimit)
		}
	}
	if wait, err := r.Take(client, false, at); wait != 0 || err != nil {
		t.Errorf("a read: got a wait of %s and error %v, want neither", wait, err)
	}
	for _, other := range []admission.Client{{Tenant: "t_acme01", Key: "k2"}, {Tenant: "t_acme02", Key: "k1"}, {Address: admission.AddressOf("192.0.2.1")}} {
		if wait, err := r.Take(other, true, at); wait != 0 || err != nil {
			t.Errorf("a write of %+v: got a wait of %s and error %v, want neither", other, wait, err)
		}
	}
	at = at.Add(200 * time.Millisecond)
	if wait, err := r.Take(client, true, at); wait != 100*time.Millisecond || err != nil {
		t.Errorf("a write after 200ms: got a wait of %s and error %v, want 100ms", wait, err)
	}
}

func TestRatesWithoutLimit(t *testing.T) {
	t.Parallel()
	r := admission.NewRates(admission.RateConfig{Reads: 1})
	at := time.UnixMilli(1_760_000_000_000)
	for range 10_000 {
		if wait, err := r.Take(admission.Client{}, true, at); wait != 0 || err != nil {
			t.Fatalf("a write: got a wait of %s and error %v, want neither", wait, err)
		}
	}
}

// Clients are forgotten, but not one that keeps sending: its limit would begin again.
func TestRatesForgetClients(t *testing.T) {
	t.Parallel()
	r := admission.NewRates(admission.RateConfig{Reads: 1, Writes: 1})
	at := time.UnixMilli(1_760_000_000_000)
	busy := admission.Client{Tenant: "t_acme01", Key: "busy"}
	if _, err := r.Take(busy, true, at); err != nil {
		t.Fatalf("the first write: got error %v, want none", err)
	}
	for i := range 100_000 {
		if _, err := r.Take(admission.Client{Tenant: "t_acme01", Key: fmt.Sprint(i)}, true, at); err != nil {
			t.Fatalf("the write of client %d: got error %v, want none", i, err)
		}
		if i%5000 != 0 {
			continue
		}
		if _, err := r.Take(busy, true, at); api.ErrorCode(err) != api.CodeCapacityLimit {
			t.Fatalf("a second write after %d clients: got error %v, want %s", i, err, api.CodeCapacityLimit)
		}
	}
	if n := r.Clients(); n > 20_000 {
		t.Errorf("Clients: got %d, want at most 20,000", n)
	}
}
