package inflate

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// packed compresses data as a format.
func packed(t interface{ Fatalf(string, ...any) }, format Format, level int, data []byte) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch format {
	case Gzip:
		w, err = gzip.NewWriterLevel(&out, level)
	case Zlib:
		w, err = zlib.NewWriterLevel(&out, level)
	default:
		w, err = flate.NewWriter(&out, level)
	}
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatalf("compress: %v", err)
	}
	return out.Bytes()
}

// unpack pushes pieces of the given size and reads with a buffer of another.
func unpack(d *Decoder, in []byte, piece, room int) (out []byte, err error) {
	buf := make([]byte, room)
	for {
		n, err := d.Read(buf)
		out = append(out, buf[:n]...)
		switch {
		case errors.Is(err, ErrMore) && len(in) > 0:
			n := min(piece, len(in))
			d.Write(in[:n])
			in = in[n:]
		case err != nil:
			return out, err
		}
	}
}

// TestAnyPieces: whatever the pieces of the input and the room for the output are, the data
// is what was compressed.
func TestAnyPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		format := Format(rapid.IntRange(0, 2).Draw(t, "format"))
		level := rapid.SampledFrom([]int{-2, 0, 1, 6, 9}).Draw(t, "level")
		data := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data"), rapid.IntRange(1, 400).Draw(t, "times"))
		in := packed(t, format, level, data)
		d := New(format, nil)
		out, err := unpack(d, append(in, 1, 2, 3), rapid.IntRange(1, 5000).Draw(t, "piece"), rapid.IntRange(1, 5000).Draw(t, "room"))
		if !errors.Is(err, ErrEnd) || !bytes.Equal(out, data) {
			t.Fatalf("unpack: got %d bytes, %v; want %d bytes, ErrEnd", len(out), err, len(data))
		}
		if d.Unread() > 3 {
			t.Fatalf("Unread() = %d, want at most 3", d.Unread())
		}
	})
}

// TestDamage: damaged and truncated data has the verdict of the standard library.
func TestDamage(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	text := bytes.Repeat([]byte("the quick brown fox "), 200)
	for i := range 60 {
		text[random.IntN(len(text))] = byte(i)
	}
	for range 4000 {
		format := Format(random.IntN(3))
		in := packed(t, format, []int{-2, 0, 6}[random.IntN(3)], text[:random.IntN(len(text))])
		if random.IntN(3) == 0 {
			in = in[:random.IntN(len(in))]
		} else {
			in[random.IntN(len(in))] ^= 1 << random.IntN(8)
		}
		if format == Gzip && len(in) > 3 && in[3]&0xe0 != 0 {
			continue // RFC 1952 reserves these flags; the standard library ignores them
		}
		want, failure := reference(format, in)
		out, err := unpack(New(format, nil), in, 1+random.IntN(100), 1+random.IntN(3000))
		truncated := errors.Is(failure, io.ErrUnexpectedEOF) || errors.Is(failure, io.EOF)
		switch {
		case failure == nil && (!errors.Is(err, ErrEnd) || !bytes.Equal(out, want)):
			t.Errorf("format %d, % x: got %d bytes, %v; want %d bytes, ErrEnd", format, in, len(out), err, len(want))
		case failure != nil && errors.Is(err, ErrEnd):
			t.Errorf("format %d, % x: got ErrEnd, want an error as %v", format, in, failure)
		case errors.Is(err, ErrMore) && !truncated:
			t.Errorf("format %d, % x: got ErrMore, want an error as %v", format, in, failure)
		}
	}
}

// reference decompresses with the standard library, one gzip member.
func reference(format Format, in []byte) ([]byte, error) {
	source := bytes.NewReader(in)
	var r io.Reader
	switch format {
	case Gzip:
		z, err := gzip.NewReader(source)
		if err != nil {
			return nil, err
		}
		z.Multistream(false)
		r = z
	case Zlib:
		z, err := zlib.NewReader(source)
		if err != nil {
			return nil, err
		}
		r = z
	default:
		r = flate.NewReader(source)
	}
	return io.ReadAll(r)
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	var whole bytes.Buffer
	w := gzip.NewWriter(&whole)
	w.Name, w.Comment, w.Extra = "name", "comment", []byte("extra")
	if _, err := w.Write([]byte("abc")); err != nil {
		t.Fatalf("Write: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	out, err := unpack(New(Gzip, nil), whole.Bytes(), 1, 10)
	if string(out) != "abc" || !errors.Is(err, ErrEnd) {
		t.Errorf("gzip with all fields: got %q, %v; want abc, ErrEnd", out, err)
	}
	for name, c := range map[string]struct {
		format Format
		in     string
		want   error
	}{
		"no gzip":              {Gzip, "PK", ErrHeader},
		"no gzip, one byte":    {Gzip, "x", ErrHeader},
		"gzip, reserved flag":  {Gzip, "\x1f\x8b\x08\x80\x00\x00\x00\x00\x00\x00", ErrHeader},
		"no zlib":              {Zlib, "xx", ErrHeader},
		"zlib with dictionary": {Zlib, "\x78\xbb\x00\x00\x00\x00", ErrDictionary},
		"reserved block":       {Raw, "\x07", ErrData},
		"nothing":              {Raw, "", ErrMore},
	} {
		if _, err := unpack(New(c.format, nil), []byte(c.in), 1, 10); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestDictionary(t *testing.T) {
	t.Parallel()
	dictionary, data := []byte("hello world, hello"), []byte("hello hello world")
	var out bytes.Buffer
	w, err := zlib.NewWriterLevelDict(&out, 9, dictionary)
	if err != nil {
		t.Fatalf("NewWriterLevelDict: %v", err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatalf("Write: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	got, err := unpack(New(Zlib, dictionary), out.Bytes(), 3, 4)
	if !bytes.Equal(got, data) || !errors.Is(err, ErrEnd) {
		t.Errorf("with the dictionary: got %q, %v; want %q, ErrEnd", got, err, data)
	}
	if _, err := unpack(New(Zlib, []byte("other")), out.Bytes(), 3, 4); !errors.Is(err, ErrDictionary) {
		t.Errorf("with another dictionary: got %v, want ErrDictionary", err)
	}
}

// TestNext: a stream may follow another one, at any place of the pieces.
func TestNext(t *testing.T) {
	t.Parallel()
	one := packed(t, Gzip, 6, []byte("one"))
	in := bytes.Repeat(one, 50)
	for piece := 1; piece < 40; piece++ {
		d, out, rest := New(Gzip, nil), "", in
		for {
			part, err := unpack(d, nil, 1, 2)
			out += string(part)
			if errors.Is(err, ErrEnd) && d.Next([]byte{0x1f, 0x8b}) {
				continue
			}
			if len(rest) == 0 {
				break
			}
			n := min(piece, len(rest))
			d.Write(rest[:n])
			rest = rest[n:]
		}
		if out != strings.Repeat("one", 50) {
			t.Errorf("pieces of %d bytes: got %d bytes, want 150", piece, len(out))
		}
	}
}

// TestInputWithoutOutput: a call ends although the input has no output.
func TestInputWithoutOutput(t *testing.T) {
	t.Parallel()
	d := New(Raw, nil)
	d.Write(bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 1<<20))
	calls := 0
	for {
		n, err := d.Read(make([]byte, 10))
		if n != 0 {
			t.Fatalf("Read = %d bytes, want none", n)
		}
		if err != nil {
			break
		}
		calls++
	}
	if calls < 4 {
		t.Errorf("got %d calls that went on, want at least 4 of 1 MiB each", calls)
	}
}
