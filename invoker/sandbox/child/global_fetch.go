package child

import (
	"github.com/dop251/goja"
)

type fetchHead struct {
	URL      string      `json:"url"`
	Method   string      `json:"method"`
	Headers  [][2]string `json:"headers"`
	Redirect string      `json:"redirect"`
}

type fetchReply struct {
	Status     int         `json:"status"`
	StatusText string      `json:"status_text"`
	URL        string      `json:"url"`
	Redirected bool        `json:"redirected"`
	Headers    [][2]string `json:"headers"`
}

func fetch(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		head := fetchHead{URL: call.Argument(0).String(), Method: "GET", Headers: [][2]string{}, Redirect: "follow"}
		var body []byte
		if init, ok := call.Argument(1).(*goja.Object); ok {
			if m, ok := stringProperty(init, "method"); ok {
				head.Method = m
			}
			if b, ok := stringProperty(init, "body"); ok {
				body = []byte(b)
			}
		}
		d, _ := r.call("http.fetch", head, body, func(head, blob []byte) goja.Value {
			var reply fetchReply
			r.decode(head, &reply)
			return r.newNamespace([]row{
				{"status", func(r *realm) goja.Value { return r.vm.ToValue(reply.Status) }},
				{"ok", func(r *realm) goja.Value { return r.vm.ToValue(reply.Status >= 200 && reply.Status < 300) }},
				{"text", function("text", 0, func(r *realm, _ goja.FunctionCall) goja.Value {
					d := r.newDeferred()
					must(d.resolve(r.vm.ToValue(string(blob))))
					return d.value(r)
				})},
				{"json", function("json", 0, func(r *realm, _ goja.FunctionCall) goja.Value {
					d := r.newDeferred()
					must(d.settle(r, func() goja.Value { return r.parsed(blob) }))
					return d.value(r)
				})},
			})
		})
		return d
	})
}
