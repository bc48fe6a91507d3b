// Command console builds the web interface in the folder console into one archive, which the
// program embeds (see controlplane/console). The files have names with their hash, and are stored
// compressed with gzip and Zstandard, so that a server compresses nothing.
//
//	go run ./tools/console -from console -out bin/console.zip
package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func main() {
	from := flag.String("from", "console", "the folder of the sources, with node_modules")
	out := flag.String("out", "bin/console.zip", "the archive to write")
	flag.Parse()
	if err := run(*from, *out); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

func run(from, out string) error {
	files, err := bundle(from)
	if err != nil {
		return err
	}
	archive, err := pack(files)
	if err != nil {
		return err
	}
	return os.WriteFile(out, archive, 0o644)
}

// A file is one output of the bundler.
type file struct {
	name    string // below the folder of the console
	content []byte
}

// index names the files that the page begins with.
type index struct {
	Script string `json:"script"`
	Style  string `json:"style"`
}

// bundle returns the scripts and styles with the index of the page, in the order of their names.
func bundle(from string) ([]file, error) {
	root, err := filepath.Abs(from)
	if err != nil {
		return nil, err
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: root, EntryPoints: []string{"src/main.tsx"}, Outdir: filepath.Join(root, "out"),
		Bundle: true, Splitting: true, Format: api.FormatESModule, Platform: api.PlatformBrowser, Target: api.ES2022,
		EntryNames: "assets/[name]-[hash]", ChunkNames: "assets/[name]-[hash]", AssetNames: "assets/[name]-[hash]",
		MinifySyntax: true, MinifyIdentifiers: true, MinifyWhitespace: true, Charset: api.CharsetUTF8,
		JSX: api.JSXAutomatic, JSXImportSource: "preact", LegalComments: api.LegalCommentsInline,
		LogLevel: api.LogLevelSilent,
	})
	if len(result.Errors) > 0 {
		return nil, errors.New(strings.Join(api.FormatMessages(result.Errors, api.FormatMessagesOptions{}), ""))
	}
	var files []file
	var start index
	for _, output := range result.OutputFiles {
		name, err := filepath.Rel(filepath.Join(root, "out"), output.Path)
		if err != nil {
			return nil, err
		}
		name = filepath.ToSlash(name)
		switch {
		case strings.HasPrefix(name, "assets/main-") && strings.HasSuffix(name, ".js"):
			start.Script = name
		case strings.HasPrefix(name, "assets/main-") && strings.HasSuffix(name, ".css"):
			start.Style = name
		}
		files = append(files, file{name, output.Contents})
	}
	text, err := json.Marshal(start)
	if err != nil {
		return nil, err
	}
	files = append(files, file{"index.json", text})
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// pack returns a ZIP of the files: index.json as it is, and the others as NAME.gz and NAME.zst. The
// same files make the same bytes.
func pack(files []file) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	add := func(name string, content []byte) error {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	}
	for _, f := range files {
		if f.name == "index.json" {
			if err := add(f.name, f.content); err != nil {
				return nil, err
			}
			continue
		}
		zipped, squeezed, err := compress(f.content)
		if err == nil {
			err = add(f.name+".gz", zipped)
		}
		if err == nil {
			err = add(f.name+".zst", squeezed)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	err := archive.Close()
	return out.Bytes(), err
}

// compress returns content in the encodings gzip and zstd of HTTP.
func compress(content []byte) (zipped, squeezed []byte, err error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, nil, err
	}
	if err := w.Close(); err != nil {
		return nil, nil, err
	}
	// Browsers refuse windows of more than 8 MiB.
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
	if err != nil {
		return nil, nil, err
	}
	return out.Bytes(), encoder.EncodeAll(content, nil), encoder.Close()
}
