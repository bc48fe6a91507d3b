package command

import (
	"io"
	"net/http"
	"sync/atomic"

	"github.com/codesous/sous/api"
)

// meteredFrom is the number of bytes from which a body counts as a transfer: smaller ones are
// sent in less time than a user notices.
const meteredFrom = 256 << 10

// transfer counts the bytes of the latest large body that is sent or received.
type transfer struct {
	done, total atomic.Int64
}

// begin starts the count of a body of so many bytes.
func (t *transfer) begin(total int64) {
	t.total.Store(0) // no reader sees the old count with the new total
	t.done.Store(0)
	t.total.Store(total)
}

// share returns the count as text and as a share from 0 to 1. It returns false if there is no
// transfer, or if all of it is done: then the server works.
func (t *transfer) share() (text string, share float64, ok bool) {
	total, done := t.total.Load(), t.done.Load()
	if total <= 0 || done >= total {
		return "", 0, false
	}
	return api.SizeText(done) + " of " + api.SizeText(total), float64(done) / float64(total), true
}

// meteredTransport reports the large bodies of requests and answers to a transfer.
type meteredTransport struct {
	next  http.RoundTripper
	meter *transfer
}

// RoundTrip implements http.RoundTripper. It does not change r.
func (m meteredTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.ContentLength >= meteredFrom {
		m.meter.begin(r.ContentLength)
		metered := r.Clone(r.Context())
		metered.Body = &meteredBody{r.Body, m.meter}
		r = metered
	}
	response, err := m.next.RoundTrip(r)
	if err == nil && response.ContentLength >= meteredFrom {
		m.meter.begin(response.ContentLength)
		response.Body = &meteredBody{response.Body, m.meter}
	}
	return response, err
}

// meteredBody counts the bytes that are read.
type meteredBody struct {
	io.ReadCloser
	meter *transfer
}

// Read implements io.Reader.
func (b *meteredBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.meter.done.Add(int64(n))
	return n, err
}
