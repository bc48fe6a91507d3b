package child

import "github.com/dop251/goja"

// fetchHead is the head of an http.fetch call; its blob is the body.
type fetchHead struct {
	URL      string      `json:"url"`
	Method   string      `json:"method"`
	Headers  [][2]string `json:"headers"`
	Redirect string      `json:"redirect"`
}

// fetch asks the host for an exchange (https://fetch.spec.whatwg.org/#fetch-method).
func fetch(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		q := r.newRequest(call.Argument(0), call.Argument(1))
		signal, _ := stateOf[*abortSignal](q.signal)
		if signal != nil && signal.aborted {
			panic(signal.reason)
		}
		head := fetchHead{URL: q.url, Method: q.method, Headers: q.headers.list, Redirect: q.redirect}
		if head.Headers == nil {
			head.Headers = [][2]string{}
		}
		d, id := r.call("http.fetch", head, q.body.data, r.fetched)
		if signal != nil {
			// The exchange goes on in the parent; its answer finds nobody.
			signal.then = append(signal.then, func(reason goja.Value) {
				if r.abandon(id) {
					must(d.reject(reason))
				}
			})
		}
		return d
	})
}
