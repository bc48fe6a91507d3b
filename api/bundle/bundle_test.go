package bundle_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
)

func TestDigestIsTheSameOnEveryMachine(t *testing.T) {
	t.Parallel()
	packed, err := bundle.Pack(map[string][]byte{
		"function.js":   []byte("export default () => 1;\n"),
		"manifest.json": []byte(`{"schema":"cs.function.script.v1"}`),
		"lib/ü.js":      []byte("export const x = 1;\n"),
	})
	if err != nil {
		t.Fatalf("bundle.Pack: %v", err)
	}
	// Stored versions are addressed by this digest: a change of it is a change of format.
	const want = "8be5797b14ac3861cef4f0c6327f574c25237ce6a0c8eb8a5797d1b9046f63c6"
	if got := bundle.Digest(packed); got != want {
		t.Errorf("digest = %s, want %s", got, want)
	}
}

func TestPackUnpackRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		files := rapid.MapOfN(
			rapid.StringMatching(`[a-zé]{1,40}(/[a-z0-9._-]{1,60}x){0,2}`),
			rapid.Map(rapid.String(), func(s string) []byte { return []byte(strings.ToValidUTF8(s, "?")) }),
			1, 8).Draw(t, "files")
		packed, err := bundle.Pack(files)
		if err != nil {
			t.Skip("refused: a file below a file")
		}
		got, err := bundle.Unpack(bytes.NewReader(packed))
		if err != nil {
			t.Fatalf("bundle.Unpack: %v", err)
		}
		if diff := cmp.Diff(files, got); diff != "" {
			t.Fatalf("difference (-want +got):\n%s", diff)
		}
		again, err := bundle.Pack(maps.Clone(got))
		if err != nil || !bytes.Equal(packed, again) {
			t.Fatalf("Pack of the same files again: got other bytes or error %v, want the same bytes", err)
		}
	})
}

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	many := map[string][]byte{}
	for i := range api.MaxBundleFiles + 1 {
		many[fmt.Sprintf("f%d.js", i)] = nil
	}
	one := func(name string) map[string][]byte { return map[string][]byte{name: nil} }
	for name, tc := range map[string]struct {
		files map[string][]byte
		code  api.Code
	}{
		"no file":          {nil, api.CodeValidationBundle},
		"too many files":   {many, api.CodeValidationBundle},
		"too many bytes":   {map[string][]byte{"a": make([]byte, api.MaxBundleBytes), "b": {1}}, api.CodeBodyLimit},
		"empty path":       {one(""), api.CodeValidationBundle},
		"long path":        {one(strings.Repeat("a", api.MaxBundlePath+1)), api.CodeValidationBundle},
		"absolute path":    {one("/etc/passwd"), api.CodeValidationBundle},
		"parent":           {one(".."), api.CodeValidationBundle},
		"below parent":     {one("../function.js"), api.CodeValidationBundle},
		"parent within":    {one("a/../function.js"), api.CodeValidationBundle},
		"dot":              {one("."), api.CodeValidationBundle},
		"dot within":       {one("a/./function.js"), api.CodeValidationBundle},
		"double slash":     {one("a//b.js"), api.CodeValidationBundle},
		"trailing slash":   {one("a/"), api.CodeValidationBundle},
		"NUL":              {one("a\x00.js"), api.CodeValidationBundle},
		"newline":          {one("a\n.js"), api.CodeValidationBundle},
		"backslash":        {one(`a\b.js`), api.CodeValidationBundle},
		"path not UTF-8":   {one("a\xff.js"), api.CodeValidationBundle},
		"content not text": {map[string][]byte{"a.js": {0xff, 0xfe}}, api.CodeValidationBundle},
		"file below file":  {map[string][]byte{"a": nil, "a/b.js": nil}, api.CodeValidationBundle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := api.ErrorCode(bundle.Validate(tc.files)); got != tc.code {
				t.Errorf("Validate: code %q, want %q", got, tc.code)
			}
			if _, err := bundle.Pack(tc.files); api.ErrorCode(err) != tc.code {
				t.Errorf("Pack: %v, want %s", err, tc.code)
			}
		})
	}
}

func TestPackRefusesTarOverLimit(t *testing.T) {
	t.Parallel()
	// The contents fit, their headers and padding no longer do.
	_, err := bundle.Pack(map[string][]byte{"a.js": make([]byte, api.MaxBundleBytes)})
	if api.ErrorCode(err) != api.CodeBodyLimit {
		t.Errorf("got error %v, want code %s", err, api.CodeBodyLimit)
	}
}

func TestUnpackAcceptsOtherTools(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	add(t, w, &tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "x"}}, "")
	add(t, w, &tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755}, "")
	add(t, w, &tar.Header{Typeflag: tar.TypeDir, Name: "./lib/", Mode: 0o755}, "")
	add(t, w, &tar.Header{Typeflag: tar.TypeReg, Name: "./lib/a.js", Mode: 0o600, Uid: 1000, Uname: "me", ModTime: time.Now(), Format: tar.FormatPAX}, "a")
	add(t, w, &tar.Header{Typeflag: tar.TypeReg, Name: "function.js", Mode: 0o755, Format: tar.FormatGNU}, "b")
	if err := w.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	buf.Write(make([]byte, 8192)) // GNU tar pads to records of 10 KiB
	got, err := bundle.Unpack(&buf)
	if err != nil {
		t.Fatalf("bundle.Unpack: %v", err)
	}
	want := map[string][]byte{"lib/a.js": []byte("a"), "function.js": []byte("b")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
}

func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	reg := func(name string) *tar.Header {
		return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}
	}
	for name, tc := range map[string]struct {
		headers []*tar.Header
		code    api.Code
	}{
		"symbolic link": {[]*tar.Header{{Typeflag: tar.TypeSymlink, Name: "function.js", Linkname: "/etc/passwd"}}, api.CodeValidationBundle},
		"hard link":     {[]*tar.Header{{Typeflag: tar.TypeLink, Name: "function.js", Linkname: "a"}}, api.CodeValidationBundle},
		"device":        {[]*tar.Header{{Typeflag: tar.TypeChar, Name: "function.js"}}, api.CodeValidationBundle},
		"fifo":          {[]*tar.Header{{Typeflag: tar.TypeFifo, Name: "function.js"}}, api.CodeValidationBundle},
		"twice":         {[]*tar.Header{reg("function.js"), reg("./function.js")}, api.CodeValidationBundle},
		"parent":        {[]*tar.Header{reg("../function.js")}, api.CodeValidationBundle},
		"nothing":       {nil, api.CodeValidationBundle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var buf bytes.Buffer
			w := tar.NewWriter(&buf)
			for _, h := range tc.headers {
				add(t, w, h, "")
			}
			if err := w.Close(); err != nil {
				t.Fatalf("Close: %v", err)
			}
			if _, err := bundle.Unpack(&buf); api.ErrorCode(err) != tc.code {
				t.Errorf("got %v, want %s", err, tc.code)
			}
		})
	}
}

func TestUnpackIsBounded(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*bytes.Reader{
		"not a tar": bytes.NewReader([]byte("hello, this is no tar")),
		"cut short": bytes.NewReader(cut(t)),
	} {
		if _, err := bundle.Unpack(r); api.ErrorCode(err) != api.CodeValidationBundle {
			t.Errorf("Unpack of %s: got error %v, want code %s", name, err, api.CodeValidationBundle)
		}
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for i := range 2 {
		add(t, w, &tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprint(i), Mode: 0o644}, strings.Repeat("x", api.MaxBundleBytes/2))
	}
	if err := w.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if _, err := bundle.Unpack(&buf); api.ErrorCode(err) != api.CodeBodyLimit {
		t.Errorf("Unpack over the limit: got error %v, want code %s", err, api.CodeBodyLimit)
	}
}

// rawEntry is an entry of a tar as bytes, of a type that tar.Writer does not write.
func rawEntry(typeflag byte, name, content string) []byte {
	block := make([]byte, 512)
	copy(block, name)
	copy(block[100:], "0000644\x000000000\x000000000\x00")
	copy(block[124:], fmt.Sprintf("%011o\x0000000000000\x00        ", len(content)))
	block[156] = typeflag
	copy(block[257:], "ustar\x0000")
	sum := 0
	for _, b := range block {
		sum += int(b)
	}
	copy(block[148:], fmt.Sprintf("%06o\x00 ", sum))
	padded := (len(content) + 511) / 512 * 512
	return append(block, append([]byte(content), make([]byte, padded-len(content))...)...)
}

// A sparse file, whose content is not in the tar, is refused in each format before it is read.
func TestUnpackRefusesSparseFiles(t *testing.T) {
	t.Parallel()
	record := func(key, value string) string {
		length := len(key) + len(value) + 3
		length += len(fmt.Sprint(length + 2))
		return fmt.Sprintf("%d %s=%s\n", length, key, value)
	}
	for name, records := range map[string]string{
		"0.0": record("GNU.sparse.size", "16000000") + record("GNU.sparse.numblocks", "1") +
			record("GNU.sparse.offset", "16000000") + record("GNU.sparse.numbytes", "0"),
		"0.1": record("GNU.sparse.size", "16000000") + record("GNU.sparse.numblocks", "1") + record("GNU.sparse.map", "16000000,0"),
		"1.0": record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0") +
			record("GNU.sparse.name", "function.js") + record("GNU.sparse.realsize", "16000000"),
	} {
		content := ""
		if name == "1.0" {
			content = "1\n16000000\n0\n" + strings.Repeat("\x00", 499)
		}
		raw := slices.Concat(rawEntry('x', "PaxHeaders/function.js", records), rawEntry('0', "function.js", content), make([]byte, 1024))
		_, err := bundle.Unpack(bytes.NewReader(raw))
		if api.ErrorCode(err) != api.CodeValidationBundle || !strings.Contains(fmt.Sprint(err), "sparse") {
			t.Errorf("%s: got error %v, want %s that says that the file is sparse", name, err, api.CodeValidationBundle)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	packed, err := bundle.Pack(map[string][]byte{"function.js": []byte("x")})
	if err != nil {
		f.Fatalf("bundle.Pack: %v", err)
	}
	f.Add(packed)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		files, err := bundle.Unpack(bytes.NewReader(raw))
		if err != nil {
			return
		}
		if _, err := bundle.Pack(files); err != nil && api.ErrorCode(err) != api.CodeBodyLimit {
			t.Errorf("what was unpacked cannot be packed: %v", err)
		}
	})
}

func cut(t *testing.T) []byte {
	t.Helper()
	packed, err := bundle.Pack(map[string][]byte{"function.js": make([]byte, 5000)})
	if err != nil {
		t.Fatalf("bundle.Pack: %v", err)
	}
	return packed[:3000]
}

func add(t *testing.T, w *tar.Writer, h *tar.Header, content string) {
	t.Helper()
	h.Size = int64(len(content))
	if err := w.WriteHeader(h); err != nil {
		t.Fatalf("WriteHeader: %v", err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatalf("Write: %v", err)
	}
}
