package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
)

const (
	documentInstall   = "bench" // of the REST part; a function uses its own install
	documentNamespace = "docs"
	smallNamespace    = 1000
	largeNamespace    = 1_000_000
	// documentConnections is the number of concurrent callers in the throughput part.
	documentConnections = 16
)

// documentValue is the value of every document: about 200 bytes.
var documentValue = fmt.Sprintf(`{"name":"a document","tags":["one","two"],"text":%q}`, strings.Repeat("x", 140))

// documentOp is an operation that is measured over REST and from within a function.
type documentOp struct {
	name, path string                   // path follows …/storage
	body       func(records int) string // of a POST, with a random key; nil: a GET
	script     string                   // JavaScript: an expression of n, a random number
}

var documentOps = []documentOp{
	{"get", "", nil, `cs.storage.get({namespace: "docs", key: key(n)})`},
	{"put", "/put", func(records int) string {
		return fmt.Sprintf(`{"namespace":"docs","key":%q,"value":%s}`, documentKey(rand.IntN(records)), documentValue)
	}, `cs.storage.put({namespace: "docs", key: key(n), value: value})`},
	{"list of 25", "/list", func(records int) string {
		return fmt.Sprintf(`{"namespace":"docs","limit":25,"keyPrefix":%q}`, documentKey(rand.IntN(records))[:7])
	}, `cs.storage.list({namespace: "docs", limit: 25, keyPrefix: key(n).slice(0, 7)})`},
	{"bulkPut of 20", "/bulkPut", func(records int) string {
		return `{"namespace":"docs","items":[` + strings.Join(bulkItems(rand.IntN(records)), ",") + `]}`
	}, `cs.storage.bulkPut({namespace: "docs", items: Array.from({length: 20}, (_, i) => ({key: key((n + i * 37) % 1000), value}))})`},
}

// bulkItems returns 20 items as JSON, with keys that are 37 apart, so that they differ.
func bulkItems(from int) []string {
	items := make([]string, api.MaxDocumentBulkItems)
	for i := range items {
		items[i] = fmt.Sprintf(`{"key":%q,"value":%s}`, documentKey((from+i*37)%smallNamespace), documentValue)
	}
	return items
}

// documentKey returns the nth key: 27 is k00007-0000027. A twentieth of the keys has the same
// first seven characters, which the list operation uses as a prefix.
func documentKey(n int) string { return fmt.Sprintf("k%05d-%07d", n%20, n) }

// documentScript is a function that performs one operation 50 times in a row and answers the
// time of each in milliseconds. withinFunction replaces VALUE, OPERATION and %%.
const documentScript = `
const value = VALUE;
const key = (n) => "k" + String(n %% 20).padStart(5, "0") + "-" + String(n).padStart(7, "0");
export default async () => {
  const took = [];
  for (let i = 0; i < 50; i++) {
    const n = Math.floor(Math.random() * 1000), begin = performance.now();
    await OPERATION;
    took.push(performance.now() - begin);
  }
  return took;
}`

// documentOperations measures the operations of the document storage over REST, on one and on
// documentConnections connections, and from within functions. The difference between the two
// on one connection is that between an HTTP request and a host call.
func documentOperations(ctx context.Context, o options) ([]row, error) {
	b, err := newTestbed(ctx, o, append(profileArgs(o), "--storage-rate", "0")...)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := fillDocuments(ctx, b.store, documentInstall, smallNamespace); err != nil {
		return nil, err
	}
	var rows []row
	for _, op := range documentOps {
		one, err := load{b.sous.addr, op.request(b.sous.addr, smallNamespace), 1, o.seconds / 2}.run(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op.name, err)
		}
		stopProfile := startProfile(ctx, o, "documents-"+strings.ReplaceAll(op.name, " ", "-"))
		many, err := load{b.sous.addr, op.request(b.sous.addr, smallNamespace), documentConnections, o.seconds}.run(ctx)
		stopProfile()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op.name, err)
		}
		within, err := b.withinFunction(ctx, o, op)
		if err != nil {
			return nil, fmt.Errorf("%s within a function: %w", op.name, err)
		}
		rows = append(rows,
			row{name: "REST, " + op.name + ", 1 connection", value: loadText(one), want: "no error", ok: one.errors == 0},
			row{name: fmt.Sprintf("REST, %s, %d connections", op.name, documentConnections), value: loadText(many), want: "no error", ok: many.errors == 0},
			row{name: "within a function, " + op.name, value: loadText(within)})
	}
	return rows, nil
}

// request returns the requests of a load of op, as they are sent: each has a random key.
func (op documentOp) request(addr string, records int) func() []byte {
	base := "/v1/tenants/" + tenant + "/installs/" + documentInstall + "/storage"
	if op.body == nil {
		return func() []byte {
			return httpGet(addr, base+"/get?namespace="+documentNamespace+"&key="+documentKey(rand.IntN(records)))()
		}
	}
	return func() []byte {
		body := op.body(records)
		return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			base+op.path, addr, len(body), body)
	}
}

// withinFunction runs op from within a function, one call after the other, for
// options.seconds. The function works on its own install, which gets as many documents as the
// install of the REST part.
func (b *testbed) withinFunction(ctx context.Context, o options, op documentOp) (r result, err error) {
	name := strings.Fields(strings.ToLower(op.name))[0] + "-documents"
	source := strings.NewReplacer("VALUE", documentValue, "OPERATION", op.script, "%%", "%").Replace(documentScript)
	config := fmt.Sprintf(`{"timeout_ms":20000,"capabilities":{"storage":{"namespaces":[%q],"ops":["*"]}}}`, documentNamespace)
	if err := publish(ctx, b.sous, name, source, config); err != nil {
		return r, err
	}
	if err := fillDocuments(ctx, b.store, api.FunctionInstall(namespace, name), smallNamespace); err != nil {
		return r, err
	}
	begin := time.Now()
	for time.Since(begin) < o.seconds {
		took, err := b.durations(ctx, name)
		if err != nil {
			return r, err
		}
		for _, ms := range took {
			r.sorted = append(r.sorted, time.Duration(ms*float64(time.Millisecond)))
		}
	}
	slices.Sort(r.sorted)
	r.perSecond = float64(len(r.sorted)) / time.Since(begin).Seconds()
	return r, nil
}

// durations calls the function called name once and returns the times that it answers.
func (b *testbed) durations(ctx context.Context, name string) (took []float64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.sous.addr+webPath(name), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s: %s", errNoAnswer, resp.Status, body)
	}
	return took, json.Unmarshal(body, &took)
}

// documentsGrowth compares get and list in a namespace of a million documents, times
// options.scale, with those in a namespace of a thousand.
func documentsGrowth(ctx context.Context, o options) ([]row, error) {
	large := int(largeNamespace * o.scale)
	sides := map[int]*testbed{}
	for _, records := range []int{smallNamespace, large} {
		b, err := newTestbed(ctx, o, "--storage-rate", "0")
		if err != nil {
			return nil, err
		}
		defer b.close()
		if err := fillDocuments(ctx, b.store, documentInstall, records); err != nil {
			return nil, err
		}
		sides[records] = b
	}
	var rows []row
	for _, op := range documentOps {
		if op.name != "get" && op.name != "list of 25" {
			continue
		}
		target := func(records int) load {
			addr := sides[records].sous.addr
			return load{addr, op.request(addr, records), documentConnections, o.seconds}
		}
		rl, rs, err := compare(ctx, o, target(large), target(smallNamespace))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op.name, err)
		}
		ratio := rl.perSecond / rs.perSecond
		rows = append(rows,
			row{name: fmt.Sprintf("%s, %d documents", op.name, smallNamespace), value: loadText(rs)},
			row{name: fmt.Sprintf("%s, %d documents", op.name, large), value: loadText(rl)},
			row{op.name + ", share of the small namespace's", fmt.Sprintf("%.2f", ratio), "within 20%", math.Abs(1-ratio) <= 0.2 || ratio > 1})
	}
	return rows, nil
}

// fillDocuments writes documents into a namespace through the repository, without a quota.
func fillDocuments(ctx context.Context, store *process, install string, records int) error {
	s, err := storage.Open(ctx, storage.Config{URL: "redis://" + store.addr})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // all has been written
	path := storage.DocumentPath{Tenant: tenant, Install: install, Namespace: documentNamespace}
	repo := documents.NewRepository(s)
	const each = 100 // steps of one write: the largest number that its script takes
	return inParallel(ctx, 8, (records+each-1)/each, func(ctx context.Context, n int) error {
		var steps []documents.Step
		for i := n * each; i < min((n+1)*each, records); i++ {
			steps = append(steps, documents.Step{
				Op: api.DocumentStepPut, Key: documentKey(i), Value: []byte(documentValue), Metadata: []byte(`{}`),
			})
		}
		_, err := repo.Write(ctx, path, steps, documents.Quota{}, "", s.NowMS())
		return err
	})
}
