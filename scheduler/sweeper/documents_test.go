package sweeper_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/scheduler/sweeper"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/storagetest"
)

// swept is a store of a test's own with documents of two installs in it, and its sweeper.
type swept struct {
	*documents.Repository
	t       *testing.T
	cfg     storage.Config
	store   *storage.Store
	sw      *sweeper.Sweeper
	logs    *observer.ObservedLogs
	metrics *prometheus.Registry
	path    storage.DocumentPath
	now     time.Time
}

const sweptRecords = 100

func newSwept(t *testing.T, cfg storage.Config) *swept {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	s := storagetest.Open(t, cfg)
	f := &swept{
		Repository: documents.NewRepository(s), t: t, cfg: cfg, store: s, logs: logs, metrics: prometheus.NewRegistry(),
		path: storage.DocumentPath{Tenant: storagetest.Tenant(t), Install: "shop", Namespace: "carts"},
		now:  time.UnixMilli(1_760_000_000_000),
	}
	var err error
	f.sw, err = sweeper.New(s, brokerOn(t, s), sweeper.Config{Metrics: f.metrics}, zap.New(core))
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	f.write(f.path, f.puts(sweptRecords, 0)...)
	f.write(storage.DocumentPath{Tenant: f.path.Tenant, Install: "fn.default.other", Namespace: "settings"}, f.puts(3, 0)...)
	return f
}

// puts are n documents that expire in so many seconds, 0 for never.
func (f *swept) puts(n int, seconds int64) (steps []documents.Step) {
	for i := range n {
		step := documents.Step{Op: api.DocumentStepPut, Key: fmt.Sprintf("key %d %03d", seconds, i), Value: json.RawMessage(`"value"`)}
		if seconds > 0 {
			step.ExpiresAtMS = f.now.UnixMilli() + 1_000*seconds
		}
		steps = append(steps, step)
	}
	return steps
}

func (f *swept) write(p storage.DocumentPath, steps ...documents.Step) {
	f.t.Helper()
	if _, err := f.Write(f.t.Context(), p, steps, documents.Quota{}, "", f.now.UnixMilli()); err != nil {
		f.t.Fatalf("Write: %v", err)
	}
}

// sweep makes a pass on every route, and counts the repairs and the expired documents.
func (f *swept) sweep() (mended map[string]int, expired int) {
	f.t.Helper()
	mended = map[string]int{}
	for range 12 {
		f.now = f.now.Add(10 * time.Second)
		counts, err := f.sw.RunOnce(f.t.Context(), f.now)
		if err != nil {
			f.t.Fatalf("RunOnce: %v", err)
		}
		expired += counts.Expired
		for _, r := range counts.Repairs {
			mended[r.Kind]++
		}
	}
	return mended, expired
}

// holds are the records that the namespace and its tenant are said to hold.
func (f *swept) holds() string {
	f.t.Helper()
	namespace, tenant, err := f.Use(f.t.Context(), f.path)
	if err != nil {
		f.t.Fatalf("Use: %v", err)
	}
	return fmt.Sprint(namespace.Records, " ", tenant.Records)
}

func TestSweeperRemovesExpiredDocuments(t *testing.T) {
	t.Parallel()
	eachOwn(t, func(t *testing.T, cfg storage.Config) {
		f := newSwept(t, cfg)
		f.write(f.path, f.puts(60, 5)...)
		f.write(f.path, f.puts(90, 6)...)
		f.write(f.path, f.puts(20, 6_000)...)
		if mended, expired := f.sweep(); len(mended) != 0 || expired != 150 {
			t.Errorf("sweep: got %d expired documents and repairs %v, want 150 and none", expired, mended)
		}
		if got := f.holds(); got != "120 123" {
			t.Errorf("the namespace and its tenant: got %s, want 120 123", got)
		}
		n, err := f.store.Client().HLen(t.Context(), "cs:doc:"+f.path.Tenant+":shop:carts:records").Result()
		if err != nil || n != 120 {
			t.Errorf("HLEN of the records = %d, %v, want 120", n, err)
		}
		if got := metricstest.Value(t, f.metrics, "sous_sweeper_documents_expired_total"); got != 150 {
			t.Errorf("got %g documents counted, want 150", got)
		}
	})
}

// TestSweeperMendsCountsOfDocuments: what a crash left is mended, counted and logged once.
func TestSweeperMendsCountsOfDocuments(t *testing.T) {
	t.Parallel()
	key := func(f *swept, parts string) string { return "cs:doc:" + f.path.Tenant + ":" + parts }
	for name, tt := range map[string]struct {
		breaks func(f *swept)
		want   map[string]int
	}{
		"sound": {breaks: func(*swept) {}, want: map[string]int{}},
		"a namespace": {func(f *swept) {
			f.store.Client().HIncrBy(f.t.Context(), key(f, "shop:usage"), "carts:r", 5)
			f.store.Client().HIncrBy(f.t.Context(), key(f, "usage"), "r", 5)
		}, map[string]int{"document_use": 1}},
		"a tenant": {func(f *swept) {
			f.store.Client().HIncrBy(f.t.Context(), key(f, "usage"), "b", 5)
		}, map[string]int{"document_tenant": 1}},
		"a list": {func(f *swept) {
			f.store.Client().ZAdd(f.t.Context(), key(f, "shop:carts:index"), redis.Z{Member: "nothing"})
		}, map[string]int{"document_index": 1}},
		"due sets": {func(f *swept) { // as after clocks that were wrong
			f.store.Client().ZRem(f.t.Context(), key(f, "expiring"), "shop/carts")
		}, map[string]int{}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			eachOwn(t, func(t *testing.T, cfg storage.Config) {
				f := newSwept(t, cfg)
				f.write(f.path, f.puts(20, 5)...)
				tt.breaks(f)
				if mended, _ := f.sweep(); !maps.Equal(mended, tt.want) {
					t.Errorf("got repairs %v, want %v", mended, tt.want)
				}
				if got := f.holds(); got != "100 103" {
					t.Errorf("the namespace and its tenant: got %s, want 100 103", got)
				}
				for kind := range tt.want {
					if n := metricstest.Value(t, f.metrics, "sous_sweeper_repairs_total", "kind="+kind); n != 1 {
						t.Errorf("repairs of kind %s: got %g, want 1", kind, n)
					}
				}
				if got := f.logs.FilterMessage("repaired what a crash left behind").Len(); got != len(tt.want) {
					t.Errorf("got %d log lines, want %d: %+v", got, len(tt.want), f.logs.All())
				}
			})
		})
	}
}

// TestSweeperMendsCutWritesOfDocuments interrupts a call after each of its writes and does
// not repeat it. After the sweep the counts equal the stored documents.
func TestSweeperMendsCutWritesOfDocuments(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	f := newSwept(t, cfg)
	for k := range 16 {
		cfg.ScriptPrelude = storagetest.CutAfter(k)
		cut := documents.NewRepository(storagetest.Open(t, cfg))
		p := f.path
		p.Namespace = fmt.Sprintf("cut-%02d", k)
		f.write(p, f.puts(4, 0)...)
		steps := append(f.puts(2, 5_000), f.puts(2, 0)...)
		steps[2].Op, steps[3].Value = api.DocumentStepDelete, json.RawMessage(`0`)
		_, err := cut.Write(t.Context(), p, steps, documents.Quota{}, "", f.now.UnixMilli())
		if err == nil {
			break
		}
		if k == 15 {
			t.Errorf("got error %v after all cuts, want success: the script makes more writes than the test knows", err)
		}
	}
	if mended, _ := f.sweep(); mended["document_use"] == 0 {
		t.Errorf("got repairs %v, want some", mended)
	}
	var records int64
	namespaces, err := f.Namespaces(t.Context(), f.path.Tenant, f.path.Install)
	if err != nil {
		t.Fatalf("Namespaces: %v", err)
	}
	for _, ns := range namespaces {
		n, err := f.store.Client().HLen(t.Context(), "cs:doc:"+f.path.Tenant+":shop:"+ns.Name+":records").Result()
		if err != nil || n != ns.Use.Records {
			t.Errorf("HLEN of the records of %s = %d, %v, want %d", ns.Name, n, err, ns.Use.Records)
		}
		records += n
	}
	if got, want := f.holds(), fmt.Sprint(sweptRecords, " ", records+3); got != want {
		t.Errorf("the namespace and its tenant: got %s, want %s", got, want)
	}
}

// TestSweeperPassesATenantItCannotRead: it does not keep the sweeper from the documents of others.
func TestSweeperPassesATenantItCannotRead(t *testing.T) {
	t.Parallel()
	f := newSwept(t, storage.Config{URL: storagetest.Redis(t).URL})
	f.write(f.path, f.puts(20, 5)...)
	broken := storagetest.Tenant(t)
	f.store.Client().SAdd(t.Context(), "cs:doc:tenants", broken)
	f.store.Client().Set(t.Context(), "cs:doc:"+broken+":expiring", "not a set", 0)
	failed := false
	for range 5 {
		f.now = f.now.Add(10 * time.Second)
		_, err := f.sw.RunOnce(t.Context(), f.now)
		failed = failed || err != nil && strings.Contains(err.Error(), broken)
	}
	if got := f.holds(); got != "100 103" || !failed {
		t.Errorf("the namespace and its tenant: got %s, error of the broken tenant: %v, want 100 103 and an error", got, failed)
	}
}
