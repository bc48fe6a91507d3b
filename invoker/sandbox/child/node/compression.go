package node

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/inflate"
)

// codecPart is how many bytes one call of a codec takes or makes: a script is interrupted
// between calls.
const codecPart = 64 << 10

// deflater compresses a stream. Its tables are made with the first input.
type deflater struct {
	format string
	level  int
	out    bytes.Buffer
	w      io.WriteCloser
}

// inflater decompresses a stream.
type inflater struct{ *inflate.Decoder }

// compressionNatives are the codecs of streams. Formats are gzip, deflate (zlib) and
// deflate-raw.
func compressionNatives() map[string]native {
	return map[string]native{
		// deflater is (format, level).
		"deflater": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			return keep(vm, &deflater{format: text(call, 0), level: integer(call, 1)})
		},
		// deflate is (deflater, view, from): it compresses a part of the view, or ends the stream
		// if there is no view. It returns what was made, a buffer that may be empty.
		"deflate": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			d := kept[*deflater](vm, call.Argument(0))
			var err error
			if given(call, 1) {
				in := bytesOf(vm, call.Argument(1))[integer(call, 2):]
				err = d.write(in[:min(len(in), codecPart)])
			} else {
				err = d.close()
			}
			if err != nil {
				panic(vm.NewTypeError("the data cannot be compressed: %s", err.Error()))
			}
			made := buffer(vm, bytes.Clone(d.out.Bytes()))
			d.out.Reset()
			return made
		},
		"part": func(vm *goja.Runtime, _ goja.FunctionCall) goja.Value { return vm.ToValue(codecPart) },
		// inflater is (format, dictionary).
		"inflater": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			var dictionary []byte
			if given(call, 1) {
				dictionary = bytes.Clone(bytesOf(vm, call.Argument(1)))
			}
			format := map[string]inflate.Format{"gzip": inflate.Gzip, "deflate": inflate.Zlib}[text(call, 0)]
			return keep(vm, &inflater{inflate.New(format, dictionary)})
		},
		// feed is (inflater, view): it copies the view, which the script may change.
		"feed": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			kept[*inflater](vm, call.Argument(0)).Write(bytes.Clone(bytesOf(vm, call.Argument(1))))
			return goja.Undefined()
		},
		"inflate": inflatePart,
		// member is (inflater): it begins another member of gzip behind the end of one, and reports
		// whether there is one.
		"member": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			return vm.ToValue(kept[*inflater](vm, call.Argument(0)).Next([]byte{0x1f, 0x8b}))
		},
	}
}

// inflatePart is (inflater, room): it returns a buffer of what was made, which may be empty,
// or the number of bytes behind the end of the data, or undefined where the input is used up.
// It throws what zlib has for invalid data.
func inflatePart(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	d := kept[*inflater](vm, call.Argument(0))
	out := make([]byte, min(max(1, integer(call, 1)), codecPart))
	n, err := d.Read(out)
	switch {
	case err == nil && n < len(out)/2:
		return buffer(vm, bytes.Clone(out[:n]))
	case err == nil:
		return buffer(vm, out[:n:n])
	case errors.Is(err, inflate.ErrMore):
		return goja.Undefined()
	case errors.Is(err, inflate.ErrEnd):
		return vm.ToValue(d.Unread())
	}
	panic(zlibFailure(vm, err))
}

func (d *deflater) write(p []byte) (err error) {
	if d.w == nil {
		switch d.format {
		case "gzip":
			d.w, err = gzip.NewWriterLevel(&d.out, d.level)
		case "deflate":
			d.w, err = zlib.NewWriterLevel(&d.out, d.level)
		default:
			d.w, err = flate.NewWriter(&d.out, d.level)
		}
	}
	if err == nil {
		_, err = d.w.Write(p)
	}
	return err
}

// close ends the stream and drops the tables.
func (d *deflater) close() error {
	err := d.write(nil)
	if err == nil {
		err = d.w.Close()
	}
	d.w = closedWriter{}
	return err
}

// closedWriter refuses input behind the end.
type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (closedWriter) Close() error              { return io.ErrClosedPipe }
