package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// load is a closed loop: each connection sends its next request when it has read
// the answer to the one before. A slow server therefore gets fewer requests, and its
// latencies do not include time in a queue of the client.
type load struct {
	addr        string        // host:port
	request     func() []byte // the next one, as it is sent; all connections call it concurrently
	connections int
	length      time.Duration
}

// result is the measurement of a load.
type result struct {
	perSecond float64 // successful requests
	errors    int
	firstErr  error
	sorted    []time.Duration // of each successful request, from its first byte to the end of its answer
}

// quantile returns the latency that the share q of requests did not exceed, 0 without requests.
func (r result) quantile(q float64) time.Duration {
	return quantile(r.sorted, q)
}

// httpGet returns the request function of a load: a keep-alive GET of a path, the same each time.
func httpGet(addr, path string) func() []byte {
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, addr)
	return func() []byte { return request }
}

// run puts the load on and measures. It fails only if no request succeeded; errors besides
// are in the result. The generator writes prepared bytes and parses no more of an answer than
// its status and length, because it shares the processors with the server.
func (l load) run(ctx context.Context) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, l.length)
	defer cancel()
	parts := make([]result, l.connections)
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range parts {
		wg.Go(func() { parts[i] = l.connection(ctx) })
	}
	wg.Wait()
	elapsed := time.Since(begin)
	var all result
	for _, p := range parts {
		all.sorted = append(all.sorted, p.sorted...)
		all.errors += p.errors
		if all.firstErr == nil {
			all.firstErr = p.firstErr
		}
	}
	slices.Sort(all.sorted)
	all.perSecond = float64(len(all.sorted)) / elapsed.Seconds()
	if len(all.sorted) == 0 {
		return all, fmt.Errorf("no request succeeded: %w", all.firstErr)
	}
	return all, nil
}

// connection sends requests on one connection until ctx ends, and dials again after a
// transport error. The request in progress at the end is finished and counted.
func (l load) connection(ctx context.Context) (r result) {
	fail := func(err error) {
		r.errors++
		if r.firstErr == nil {
			r.firstErr = err
		}
	}
	var conn net.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close() // the measurement is over
		}
	}()
	var in *bufio.Reader
	for ctx.Err() == nil {
		if conn == nil {
			var err error
			conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", l.addr)
			if err != nil {
				if ctx.Err() == nil {
					fail(err)
				}
				return r
			}
			in = bufio.NewReaderSize(conn, 8<<10)
		}
		begin := time.Now()
		status, err := exchange(conn, in, l.request())
		switch {
		case err != nil:
			fail(err)
			_ = conn.Close() // it is broken already
			conn = nil
		case status != 200:
			fail(fmt.Errorf("%w: status %d", errNoAnswer, status))
		default:
			r.sorted = append(r.sorted, time.Since(begin))
		}
	}
	return r
}

var (
	headerEnd     = []byte("\r\n")
	contentLength = []byte("content-length:")
)

// exchange sends one request and reads the answer, which must carry a
// Content-Length. After an error the connection cannot be used.
func exchange(conn net.Conn, in *bufio.Reader, request []byte) (status int, err error) {
	_, err = conn.Write(request)
	if err != nil {
		return 0, err
	}
	line, err := in.ReadSlice('\n') // "HTTP/1.1 200 OK"
	if err != nil {
		return 0, err
	}
	if len(line) < 12 {
		return 0, errors.New("malformed status line")
	}
	status, err = strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0, err
	}
	length := -1
	for {
		line, err = in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if bytes.Equal(line, headerEnd) {
			break
		}
		if len(line) > len(contentLength) && bytes.EqualFold(line[:len(contentLength)], contentLength) {
			length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):])))
			if err != nil {
				return 0, err
			}
		}
	}
	if length < 0 {
		return 0, errors.New("the answer has no Content-Length")
	}
	_, err = in.Discard(length)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return status, err
}
