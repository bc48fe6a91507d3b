package child

import (
	"strings"

	"github.com/dop251/goja"
)

// webClass is an interface of the web that a module in JavaScript has.
type webClass struct{ name, module string }

// webClasses are the globals that are written in JavaScript. A module is evaluated when one
// of its names is first read.
func webClasses() []webClass {
	var classes []webClass
	for _, group := range [][2]string{
		{eventsModule, "Event EventTarget CustomEvent"},
		{"internal/performance", "Performance"},
		{"internal/timeline", "PerformanceEntry PerformanceMark PerformanceMeasure"},
		{"internal/reporting", "ErrorEvent PromiseRejectionEvent"},
		{"internal/messaging", "MessageChannel MessageEvent MessagePort"},
		{"internal/web", "Blob File FormData"},
		{"internal/readable", "ReadableStream ReadableStreamDefaultReader ReadableStreamBYOBReader"},
		{"internal/readabledefault", "ReadableStreamDefaultController"},
		{"internal/readablebytes", "ReadableByteStreamController ReadableStreamBYOBRequest"},
		{"internal/writable", "WritableStream WritableStreamDefaultWriter WritableStreamDefaultController"},
		{"internal/transform", "TransformStream TransformStreamDefaultController"},
		{"internal/queuing", "ByteLengthQueuingStrategy CountQueuingStrategy"},
		{"internal/textstreams", "TextEncoderStream TextDecoderStream"},
		{"internal/websocket", "CloseEvent WebSocket"},
		{"internal/compression", "CompressionStream DecompressionStream"},
	} {
		for _, name := range strings.Fields(group[1]) {
			classes = append(classes, webClass{name, group[0]})
		}
	}
	return classes
}

// streamClasses makes the list of what node:stream/web exports: pairs of a name and the
// module that has it.
func streamClasses(r *realm) goja.Value {
	var pairs []any
	for _, class := range webClasses() {
		if strings.Contains(class.name, "Stream") || strings.Contains(class.name, "Strategy") {
			pairs = append(pairs, r.vm.NewArray(class.name, class.module))
		}
	}
	return r.vm.NewArray(pairs...)
}

// viewRows are the natives of internal/views.
func viewRows() []row {
	return []row{
		{"usv", function("usv", 1, func(r *realm, call goja.FunctionCall) goja.Value {
			return r.vm.ToValue(r.text(call.Argument(0)).String())
		})},
		{"clone", function("clone", 1, structuredClone)},
		{"detached", function("detached", 1, bufferDetached)},
		{"transfer", function("transfer", 2, bufferTransfer)},
		{"isBuffer", function("isBuffer", 1, func(r *realm, call goja.FunctionCall) goja.Value {
			obj, ok := call.Argument(0).(*goja.Object)
			return r.vm.ToValue(ok && obj.ExportType() == bufferType)
		})},
	}
}
