package node

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"hash/crc32"
	"io"
	"maps"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/inflate"
)

func zlibNatives() map[string]native {
	natives := compressionNatives()
	maps.Copy(natives, map[string]native{
		"unfinished": func(vm *goja.Runtime, _ goja.FunctionCall) goja.Value {
			panic(zlibFailure(vm, io.ErrUnexpectedEOF))
		},
		"compress": compress, "decompress": decompress,
		"crc32": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			return vm.ToValue(crc32.Update(uint32(call.Argument(1).ToInteger()), crc32.IEEETable, bytesOf(vm, call.Argument(0))))
		},
	})
	return natives
}

// compress is (view, format, level, dictionary).
func compress(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	in, level := bytesOf(vm, call.Argument(0)), integer(call, 2)
	var dictionary []byte
	if given(call, 3) {
		dictionary = bytesOf(vm, call.Argument(3))
	}
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch text(call, 1) {
	case "gzip":
		w, err = gzip.NewWriterLevel(&out, level)
	case "zlib":
		w, err = zlib.NewWriterLevelDict(&out, level, dictionary)
	default:
		w, err = flate.NewWriterDict(&out, level, dictionary)
	}
	if err == nil {
		_, err = w.Write(in)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(failure(vm, "RangeError", "ERR_OUT_OF_RANGE", "zlib: "+err.Error()))
	}
	return buffer(vm, out.Bytes())
}

// decompress is (view, format, most bytes, dictionary, whether the end may be missing).
func decompress(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	in := bytesOf(vm, call.Argument(0))
	var dictionary []byte
	if given(call, 3) {
		dictionary = bytesOf(vm, call.Argument(3))
	}
	var r io.Reader
	var err error
	source := bytes.NewReader(in)
	switch text(call, 1) {
	case "gzip":
		if len(in) > 1 && (in[0] != 0x1f || in[1] != 0x8b) {
			panic(zlibFailure(vm, gzip.ErrHeader))
		}
		r, err = gzip.NewReader(source)
	case "zlib":
		r, err = zlib.NewReaderDict(source, dictionary)
	default:
		r = flate.NewReaderDict(source, dictionary)
	}
	most := call.Argument(2).ToInteger()
	var out []byte
	if err == nil {
		out, err = io.ReadAll(io.LimitReader(r, most+1))
	}
	switch {
	case int64(len(out)) > most:
		panic(failure(vm, "RangeError", "ERR_BUFFER_TOO_LARGE", "Cannot create a Buffer larger than "+call.Argument(2).String()+" bytes"))
	case err == nil, trailing(err, out), call.Argument(4).ToBoolean() && errors.Is(err, io.ErrUnexpectedEOF):
		return buffer(vm, out)
	}
	panic(zlibFailure(vm, err))
}

// trailing reports whether the invalid part follows a whole gzip member: Node ignores it.
func trailing(err error, out []byte) bool { return errors.Is(err, gzip.ErrHeader) && len(out) > 0 }

// zlibFailure makes the error that zlib has for err.
func zlibFailure(vm *goja.Runtime, err error) *goja.Object {
	message, code, number := "invalid stored block lengths", "Z_DATA_ERROR", -3
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, inflate.ErrMore):
		message, code, number = "unexpected end of file", "Z_BUF_ERROR", -5
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, zlib.ErrHeader), errors.Is(err, inflate.ErrHeader):
		message = "incorrect header check"
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, zlib.ErrChecksum), errors.Is(err, inflate.ErrChecksum):
		message = "incorrect data check"
	case errors.Is(err, zlib.ErrDictionary), errors.Is(err, inflate.ErrDictionary):
		message, code, number = "Missing dictionary", "Z_NEED_DICT", 2
	}
	e := failure(vm, "Error", code, message)
	must(e.Set("errno", number))
	return e
}
