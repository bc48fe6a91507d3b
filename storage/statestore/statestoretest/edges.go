package statestoretest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/statestore"
)

// calls makes every call of a store once and returns their errors by name.
func (f *fixture) calls(ctx context.Context, s statestore.Store, key string) map[string]error {
	_, get := s.Get(ctx, key)
	_, _, field := s.GetField(ctx, key, "n")
	_, swap := s.CompareAndSet(ctx, key, statestore.Fields{"n": nil}, fields("n", "1"))
	return map[string]error{
		"Get":           get,
		"Put":           s.Put(ctx, key, statestore.Record{Fields: fields("n", "1")}),
		"Delete":        s.Delete(ctx, key),
		"GetField":      field,
		"SetFields":     s.SetFields(ctx, key, fields("n", "1")),
		"CompareAndSet": swap,
		"Expire":        s.Expire(ctx, key, time.Hour),
		"Scan":          scanError(ctx, s, key, nil),
		"Scan by n":     scanError(ctx, s, key, by(statestore.Less, "5")),
	}
}

// scanError returns the error of a scan, which must be its only element.
func scanError(ctx context.Context, s statestore.Store, prefix string, filter *statestore.Filter) (failed error) {
	answers := 0
	for _, err := range s.Scan(ctx, prefix, filter) {
		answers++
		failed = err
	}
	if failed != nil && answers != 1 {
		return errors.New("the error came not alone")
	}
	return failed
}

// cancelled tests that a call with a cancelled context returns its error and writes nothing,
// and that a scan ends when its context is cancelled on the way.
func (f *fixture) cancelled() {
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	for call, err := range f.calls(ctx, f.store, f.key("a")) {
		if !errors.Is(err, context.Canceled) {
			f.Errorf("%s with a cancelled context: got error %v, want %v", call, err, context.Canceled)
		}
	}
	f.wants(f.key("a"))

	for i := range 300 {
		f.put(f.key(strings.Repeat("x", 1+i)), 0, "n", "1")
	}
	for _, filter := range []*statestore.Filter{nil, by(statestore.Less, "5")} {
		ctx, cancel := context.WithCancel(f.Context())
		defer cancel()
		var last error
		for _, err := range f.store.Scan(ctx, f.root+":", filter) {
			cancel()
			last = err
		}
		// The scan may still yield records that it had read before.
		if last != nil && !errors.Is(last, context.Canceled) {
			f.Errorf("Scan cancelled after its first record: got error %v, want %v", last, context.Canceled)
		}
	}
}

// malformed tests that malformed keys, filters and times-to-live are refused with CodeInvalid
// by every call that takes them.
func (f *fixture) malformed() {
	for _, key := range []string{
		"", ":", ":a", "a::b", "a b", "a\tb", "a\n", "a\x00b", "a\u00a0b", "a\u0085", "a\u2028", "\x7f", "\xff", "a:\xc3",
		strings.Repeat("k", statestore.MaxKeyBytes+1),
	} {
		for call, err := range f.calls(f.Context(), f.store, key) {
			if api.ErrorCode(err) != api.CodeInvalid {
				f.Errorf("%s of the key %q: got error %v, want %s", call, key, err, api.CodeInvalid)
			}
		}
	}
	for call, err := range f.calls(f.Context(), f.store, f.key("a:")) {
		if !strings.HasPrefix(call, "Scan") && api.ErrorCode(err) != api.CodeInvalid {
			f.Errorf("%s of a key that ends with a colon: got error %v, want %s", call, err, api.CodeInvalid)
		}
	}
	for name, filter := range map[string]*statestore.Filter{
		"nothing":   {},
		"no op":     {Field: "n"},
		"odd op":    {Field: "n", Op: "ne"},
		"no field":  {Op: statestore.Less, Value: []byte("1")},
		"bound":     {Field: "n", Op: statestore.Less, MaxResults: -1},
		"exception": {Field: "n", Op: statestore.Less, Except: statestore.Exception{Values: []string{"x"}}},
	} {
		if err := scanError(f.Context(), f.store, f.root, filter); api.ErrorCode(err) != api.CodeInvalid {
			f.Errorf("Scan with a malformed filter (%s): got error %v, want %s", name, err, api.CodeInvalid)
		}
	}
	for name, err := range map[string]error{
		"Put":    f.store.Put(f.Context(), f.key("a"), statestore.Record{Fields: fields("n", "1"), TTL: -1}),
		"Expire": f.store.Expire(f.Context(), f.key("a"), -time.Second),
	} {
		if api.ErrorCode(err) != api.CodeInvalid {
			f.Errorf("%s with a negative time-to-live: got error %v, want %s", name, err, api.CodeInvalid)
		}
	}
	f.wantsScan(nil)
}

// tooLarge tests that a record above the store's limit is refused with CodeBodyLimit and
// leaves the old record.
func (f *fixture) tooLarge() {
	if f.cfg.TooLarge == 0 {
		f.Skip("this store has no such limit")
	}
	key := f.key("a")
	f.put(key, 0, "n", "1")
	large := statestore.Fields{"large": make([]byte, f.cfg.TooLarge)}
	_, swap := f.store.CompareAndSet(f.Context(), key, fields("n", "1"), large)
	for call, err := range map[string]error{
		"Put":           f.store.Put(f.Context(), key, statestore.Record{Fields: large}),
		"SetFields":     f.store.SetFields(f.Context(), key, large),
		"CompareAndSet": swap,
	} {
		if api.ErrorCode(err) != api.CodeBodyLimit {
			f.Errorf("%s of %d bytes: got error %v, want code %s", call, f.cfg.TooLarge, err, api.CodeBodyLimit)
		}
	}
	f.wants(key, "n", "1")
}

// pingAndClose tests that calls after Close fail with CodeStoreUnavailable, that Close can be
// repeated, and that other stores on the same connection still work.
func (f *fixture) pingAndClose() {
	if err := f.store.Ping(f.Context()); err != nil {
		f.Fatalf("Ping: %v", err)
	}
	f.put(f.key("a"), 0, "n", "1")
	s := f.cfg.Open(f.T)
	for range 2 {
		if err := s.Close(); err != nil {
			f.Fatalf("Close: %v", err)
		}
	}
	failures := f.calls(f.Context(), s, f.key("a"))
	failures["Ping"] = s.Ping(f.Context())
	for call, err := range failures {
		if api.ErrorCode(err) != api.CodeStoreUnavailable {
			f.Errorf("%s of a closed store: got error %v, want %s", call, err, api.CodeStoreUnavailable)
		}
	}
	f.wants(f.key("a"), "n", "1") // as the other one sees it
}
