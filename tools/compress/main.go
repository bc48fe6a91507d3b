// Command compress writes its standard input to its standard output, compressed with
// Zstandard. make build uses it for the program of the sandboxes, so that a build needs no
// other tool than Go.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

func main() {
	if err := compress(os.Stdout, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "compress:", err)
		os.Exit(1)
	}
}

func compress(out io.Writer, in io.Reader) error {
	encoder, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	if _, err := io.Copy(encoder, in); err != nil {
		return err
	}
	return encoder.Close()
}
