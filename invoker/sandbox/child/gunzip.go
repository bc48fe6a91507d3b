package child

import (
	"errors"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/child/inflate"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

const (
	// gunzipPart is the size of the parts that a gunzip makes, in bytes.
	gunzipPart = 64 << 10
	// gunzipAhead is up to how many bytes a body is decompressed before a script reads it.
	gunzipAhead = 1 << 20
)

// gunzip decompresses the body of a response. The sandbox does it, and not the host, so that the
// time counts as that of the function: a few bytes can become many.
//
//	the host      first part      next part              last part
//	feed          ############    ####                   ######
//	part          64 KiB, 64 KiB, 10 KiB, more, 30 KiB, more, 50 KiB, end
type gunzip struct {
	decoder *inflate.Decoder
	fed     bool // it has got input
	whole   bool // no other input follows
}

func newGunzip(first []byte, whole bool) *gunzip {
	g := &gunzip{decoder: inflate.New(inflate.Gzip, nil)}
	g.feed(first, whole)
	return g
}

// feed adds input, which it keeps. whole reports that it is the last one.
func (g *gunzip) feed(part []byte, whole bool) {
	if len(part) > 0 {
		g.fed = true
		g.decoder.Write(part)
	}
	g.whole = whole
}

var errGzipCut = errors.New("the compressed body ends too early")

// part returns the next part of the body, at most most bytes. end reports that none follows, and
// more that feed must be called first. What follows the end of the data, and is no other member, is
// ignored, as browsers do.
func (g *gunzip) part(most int) (out []byte, end, more bool, err error) {
	out = make([]byte, most)
	for {
		n, err := g.decoder.Read(out)
		switch {
		case n > 0:
			return out[:n:n], false, false, nil
		case err == nil:
		case errors.Is(err, inflate.ErrEnd) && g.decoder.Next([]byte{0x1f, 0x8b}):
		case errors.Is(err, inflate.ErrEnd) && g.decoder.Unread() > 1, g.whole && (!g.fed || errors.Is(err, inflate.ErrEnd)):
			return nil, true, false, nil
		case !g.whole && (errors.Is(err, inflate.ErrMore) || errors.Is(err, inflate.ErrEnd)):
			return nil, false, true, nil
		case errors.Is(err, inflate.ErrMore):
			return nil, false, false, errGzipCut
		default:
			return nil, false, false, err
		}
	}
}

// ahead returns what can be decompressed without the host, up to gunzipAhead bytes and a part. end
// reports that this is the whole body. An error comes again with the next part.
func (g *gunzip) ahead() (out []byte, end bool) {
	for len(out) < gunzipAhead {
		part, end, more, err := g.part(gunzipPart)
		if end || more || err != nil {
			return out, end
		}
		out = append(out, part...)
	}
	return out, false
}

// nextPart asks the host for the next part of a body. Its value is the part, and whether it is
// the last one.
func (r *realm) nextPart(h network.Handle) *deferred {
	return send(r, network.BodyRead, h, nil, func(part network.BodyPart, data []byte) goja.Value {
		return r.vm.NewArray(r.newBytes(data), part.End)
	})
}

// nextPlain is nextPart of a body that g decompresses.
func (r *realm) nextPlain(h network.Handle, g *gunzip) *deferred {
	out, end, more, err := g.part(gunzipPart)
	if err != nil {
		panic(r.newError(api.CodeHostFetchFailed, "fetch failed: "+err.Error()))
	}
	if !more {
		if end && !g.whole {
			r.dispatch(network.BodyCancel.Name, h, nil)
		}
		d := r.newDeferred()
		must(d.resolve(r.vm.NewArray(r.newBytes(out), end)))
		return d
	}
	return send(r, network.BodyRead, h, nil, func(part network.BodyPart, data []byte) goja.Value {
		g.feed(data, part.End)
		return r.promised(func() *deferred { return r.nextPlain(h, g) })
	})
}
