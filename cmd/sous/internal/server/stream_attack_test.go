package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/storage/storagetest"
)

// TestStreamsOfBothProtocols: over HTTP/1.1 and HTTP/2, compressed and not, the parts of an
// answer arrive as they are produced, a complete answer is whole, and one that fails never
// looks complete.
func TestStreamsOfBothProtocols(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	url := deployStreamer(t, s.Server)
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for _, encoding := range []string{"identity", "gzip"} {
			t.Run(protocol+" "+encoding, func(t *testing.T) {
				t.Parallel()
				client := s.client(t, protocol == "HTTP/2.0")
				answer, body := getEncoded(t, client, url+"/events", encoding)
				if answer.Proto != protocol {
					t.Errorf("protocol: got %s, want %s", answer.Proto, protocol)
				}
				// The function waits after its first event, until the client leaves.
				if line, err := bufio.NewReader(body).ReadString('\n'); line != "data: 0\n" || err != nil {
					t.Errorf("events: got %q, %v, want the first one", line, err)
				}
				_, body = getEncoded(t, client, url+"/lines", encoding)
				if text, err := io.ReadAll(body); string(text) != strings.Repeat("a line\n", 1000) || err != nil {
					t.Errorf("lines: got %d bytes, %v, want %d", len(text), err, 7000)
				}
				_, body = getEncoded(t, client, url+"/throws", encoding)
				if text, err := io.ReadAll(body); string(text) != "part" || err == nil {
					t.Errorf("throws: got %q, %v, want what was produced before the failure, and an error", text, err)
				}
			})
		}
	}
}

// getEncoded sends a request that accepts one encoding, and returns the answer with its
// decoded body.
func getEncoded(t *testing.T, client *http.Client, url, encoding string) (*http.Response, io.Reader) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatalf("http.NewRequest: %v", err)
	}
	request.Header.Set("Accept-Encoding", encoding)
	answer, err := client.Do(request)
	if err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	if got := answer.Header.Get("Vary"); got != "Accept-Encoding" {
		t.Errorf("Vary: got %q, want Accept-Encoding", got)
	}
	if encoding == "identity" {
		if got := answer.Header.Get("Content-Encoding"); got != "" {
			t.Fatalf("Content-Encoding: got %q, want none", got)
		}
		return answer, answer.Body
	}
	if got := answer.Header.Get("Content-Encoding"); got != "gzip" {
		t.Fatalf("Content-Encoding: got %q, want gzip", got)
	}
	return answer, &unzipped{body: answer.Body}
}

// unzipped is a body that is decompressed. Its first Read reads the head of the compressed
// form, which an answer that is cut may lack.
type unzipped struct {
	body io.Reader
	text *gzip.Reader // nil before the first Read
}

func (u *unzipped) Read(p []byte) (int, error) {
	if u.text == nil {
		text, err := gzip.NewReader(u.body)
		if err != nil {
			return 0, fmt.Errorf("the head of gzip: %w", err)
		}
		u.text = text
	}
	return u.text.Read(p)
}

// TestThousandSlowReaders: a thousand clients ask for endless answers and read nothing. As
// many as may run at once get one, the others wait, or are refused by the limit of the version or
// because the replica is overloaded. The server's memory stays bounded, and neither goroutines nor
// busy sandboxes are left.
func TestThousandSlowReaders(t *testing.T) {
	t.Parallel()
	const readers, atOnce = 1000, 20
	s := soustest.Start(t, "--admin-listen", "127.0.0.1:0")
	url := deployStreamer(t, s, "--config", fmt.Sprintf(`{"max_concurrency": %d}`, atOnce))
	if body, err := io.ReadAll(get(t, url+"/").Body); string(body) != "plain" || err != nil {
		t.Fatalf("before: got %q, %v, want plain", body, err)
	}
	goroutines, memory := gauge(t, s, "go_goroutines"), gauge(t, s, "process_resident_memory_bytes")

	host := strings.TrimPrefix(s.URL, "http://")
	path := strings.TrimPrefix(url, s.URL) + "/forever"
	conns := make([]net.Conn, readers)
	for i := range conns {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatalf("net.Dial: %v", err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host); err != nil {
			t.Fatalf("write: %v", err)
		}
		conns[i] = conn
	}
	peak := memory
	list := s.URL + "/v1/tenants/t_default/activations?namespace=default&function=streamer&status=timeout&limit=100"
	storagetest.Eventually(t, func() bool {
		peak = max(peak, gauge(t, s, "process_resident_memory_bytes"))
		raw, err := io.ReadAll(get(t, list).Body)
		return err == nil && strings.Count(string(raw), `"status":"timeout"`) >= atOnce
	})
	cut, refused := 0, 0
	for _, conn := range conns {
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatalf("SetReadDeadline: %v", err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("http.ReadResponse: %v", err)
		}
		begin, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
		}
		overloaded := answer.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(begin), `"CS_OVERLOADED"`)
		switch {
		case (answer.StatusCode == http.StatusTooManyRequests || overloaded) && err == nil:
			refused++
		case answer.StatusCode == http.StatusOK && err != nil && !os.IsTimeout(err):
			cut++
		default:
			t.Errorf("got %d %.200s, %v, want 429, CS_OVERLOADED, or an answer that is cut", answer.StatusCode, begin, err)
		}
	}
	if cut < atOnce || refused == 0 {
		t.Errorf("got %d answers that are cut and %d refusals of %d, want at least %d and some", cut, refused, readers, atOnce)
	}
	t.Logf("memory: %.0f MiB before, %.0f MiB at the peak; %d answers, %d refusals", memory/(1<<20), peak/(1<<20), cut, refused)
	// A stream holds at most its window of 256 KiB; a connection, its buffers and goroutines.
	if most := memory + 200<<20; peak > most {
		t.Errorf("got a peak of %.0f MiB of memory, want at most %.0f", peak/(1<<20), most/(1<<20))
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	storagetest.Eventually(t, func() bool {
		return gauge(t, s, "go_goroutines") < goroutines+50 && gauge(t, s, `sous_sandbox_processes{state="busy"}`) == 0
	})
	if body, err := io.ReadAll(get(t, url+"/").Body); string(body) != "plain" || err != nil {
		t.Errorf("afterwards: got %q, %v, want plain", body, err)
	}
}

// gauge returns the value of a metric of a server that has an admin address.
func gauge(t *testing.T, s *soustest.Server, name string) float64 {
	t.Helper()
	_, rest, _ := strings.Cut(s.Output(), "answering operators")
	_, rest, _ = strings.Cut(rest, `"address": "`)
	address, _, _ := strings.Cut(rest, `"`)
	raw, err := io.ReadAll(get(t, "http://"+address+"/metrics").Body)
	if err != nil {
		t.Fatalf("metrics: %v", err)
	}
	_, rest, found := strings.Cut("\n"+string(raw), "\n"+name+" ")
	if !found {
		t.Fatalf("got no metric %s, want it exported", name)
	}
	text, _, _ := strings.Cut(rest, "\n")
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("the metric %s: %v", name, err)
	}
	return value
}
