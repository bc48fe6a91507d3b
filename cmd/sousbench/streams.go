package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// streamSource answers with one small body, buffered or streamed, or with parts of 64 KiB.
const streamSource = `
const small = new TextEncoder().encode("hello"), part = new Uint8Array(65536);
const parts = (chunk, left) => new Response(new ReadableStream({
  pull(c) { if (left-- > 0) c.enqueue(chunk); else c.close(); },
}));
export default {
  fetch(request) {
    const query = new URL(request.url).searchParams;
    if (query.has("parts")) return parts(part, Number(query.get("parts")));
    return query.has("stream") ? parts(small, 1) : new Response(small);
  },
};`

// streams measures streamed answers: the time to the first byte against that of a plain
// answer, on one connection, and 100 MB on each of 16 connections at once, with the memory
// that the server takes for it.
func streams(ctx context.Context, o options) ([]row, error) {
	b, err := newTestbed(ctx, o, profileArgs(o)...)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := publish(ctx, b.sous, "streams", streamSource, `{"timeout_ms": 60000, "max_concurrency": 16}`); err != nil {
		return nil, err
	}
	url := "http://" + b.sous.addr + webPath("streams")
	plain, streamed, err := firstBytes(ctx, o, url, url+"?stream")
	if err != nil {
		return nil, err
	}
	above := streamed - plain
	rows := []row{
		{name: "first byte of a plain answer, p50", value: ms(plain)},
		{"first byte of a streamed answer, difference from a plain one", ms(above), "< 1 ms", above < time.Millisecond},
	}
	const connections, parts = 16, 1600
	stopProfile := startProfile(ctx, o, "streams")
	d, err := download(ctx, b.sous, fmt.Sprintf("%s?parts=%d", url, parts), connections)
	stopProfile()
	if err != nil {
		return rows, err
	}
	if want := int64(connections * parts << 16); d.bytes != want {
		return rows, fmt.Errorf("streams: got %d bytes, want %d", d.bytes, want)
	}
	rate := float64(d.bytes) / 1e6 / d.took.Seconds()
	grown := float64(d.secondPeak) / float64(d.firstPeak)
	return append(rows,
		row{fmt.Sprintf("%d MB to each of %d connections", parts<<16/1_000_000, connections), fmt.Sprintf("%.0f MB/s", rate), "≥ 200 MB/s", rate >= 200},
		row{
			"peak memory of the server, the first time and again",
			fmt.Sprintf("%.0f and %.0f MiB", float64(d.firstPeak)/(1<<20), float64(d.secondPeak)/(1<<20)), "≤ 1.2 times", grown <= 1.2,
		},
	), nil
}

// firstBytes returns the medians of the time from a request to the first byte of its body, for
// two URLs in turn, on one connection.
func firstBytes(ctx context.Context, o options, plainURL, streamedURL string) (plain, streamed time.Duration, err error) {
	var all [2][]time.Duration
	for begin := time.Now(); time.Since(begin) < o.seconds || len(all[0]) < 100; {
		for i, url := range []string{plainURL, streamedURL} {
			began := time.Now()
			body, err := open(ctx, url)
			if err != nil {
				return 0, 0, err
			}
			_, err = io.ReadFull(body, make([]byte, 1))
			took := time.Since(began)
			_, rest := io.Copy(io.Discard, body)
			if err := errors.Join(err, rest, body.Close()); err != nil {
				return 0, 0, err
			}
			all[i] = append(all[i], took)
		}
	}
	for i := range all {
		slices.Sort(all[i])
	}
	return all[0][len(all[0])/2], all[1][len(all[1])/2], nil
}

// open sends a GET and returns the body of its answer.
func open(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.Join(errNoAnswer, answer.Body.Close())
	}
	return answer.Body, nil
}

// downloads is the measurement of several downloads at once, which were made twice.
// firstPeak and secondPeak are the largest resident memory of the server each time, in bytes.
type downloads struct {
	bytes                 int64
	took                  time.Duration
	firstPeak, secondPeak int64
}

// download reads url on some connections at once, twice. The first time starts the sandboxes.
func download(ctx context.Context, server *process, url string, connections int) (d downloads, err error) {
	peak := server.watchMemory(ctx)
	_, err = downloadAll(ctx, url, connections)
	d.firstPeak = peak()
	if err != nil {
		return d, err
	}
	peak = server.watchMemory(ctx)
	began := time.Now()
	d.bytes, err = downloadAll(ctx, url, connections)
	d.took, d.secondPeak = time.Since(began), peak()
	return d, err
}

// watchMemory samples the resident memory of the process until peak is called, which returns
// the largest.
func (p *process) watchMemory(ctx context.Context) (peak func() int64) {
	ctx, stop := context.WithCancel(ctx)
	sampled := make(chan int64)
	go func() {
		var largest int64
		defer func() { sampled <- largest }()
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			if now, err := p.memory(); err == nil {
				largest = max(largest, now)
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() int64 {
		stop()
		return <-sampled
	}
}

// downloadAll reads url to its end on some connections at once, and returns the sum of the
// bytes.
func downloadAll(ctx context.Context, url string, connections int) (int64, error) {
	sizes, errs := make([]int64, connections), make([]error, connections)
	var wait sync.WaitGroup
	for i := range connections {
		wait.Go(func() {
			body, err := open(ctx, url)
			if err != nil {
				errs[i] = err
				return
			}
			sizes[i], err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, body, make([]byte, 256<<10))
			errs[i] = errors.Join(err, body.Close())
		})
	}
	wait.Wait()
	var sum int64
	for _, n := range sizes {
		sum += n
	}
	return sum, errors.Join(errs...)
}

// memory returns the resident size of the process, in bytes.
func (p *process) memory() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("statm: %q", text)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
