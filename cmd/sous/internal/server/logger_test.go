package server

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/invoker"
)

// lockedBuffer is a buffer that a logger writes while the test reads it.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSuffix(b.text.String(), "\n"), "\n")
}

// Lines about activations wait for company, but not for long, and never beyond a
// later line of another kind.
func TestLoggerKeepsOrderAndPromptness(t *testing.T) {
	t.Parallel()
	var out lockedBuffer
	logger, stop, err := newLogger(&out, settings{LogLevel: "info", LogFormat: logJSON})
	if err != nil {
		t.Fatalf("newLogger: %v", err)
	}
	defer stop()
	named := logger.Named("invoker").With(zap.String("with", "fields"))
	named.Info(invoker.LogActivation, zap.Int("n", 1))
	logger.Debug("unheard")
	named.Warn("at once", zap.Int("n", 2))
	lines := out.lines()
	if len(lines) != 2 || !strings.Contains(lines[0], `"n":1`) || !strings.Contains(lines[1], `"n":2`) {
		t.Fatalf("lines after one that is not about an activation, want all of them written:\n%s", strings.Join(lines, "\n"))
	}
	named.Info(invoker.LogActivation, zap.Int("n", 3))
	for deadline := time.Now().Add(20 * time.Second); len(out.lines()) < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a delayed line was not written in time")
		}
	}
	named.Info(invoker.LogActivation, zap.Int("n", 4))
	stop()
	if n := len(out.lines()); n != 4 {
		t.Errorf("%d lines after stop, want all", n)
	}
}

// BenchmarkLogOfAnActivation measures the cost of an activation's log line.
func BenchmarkLogOfAnActivation(b *testing.B) {
	logger, stop, err := newLogger(io.Discard, settings{LogLevel: "info", LogFormat: logJSON})
	if err != nil {
		b.Fatalf("newLogger: %v", err)
	}
	defer stop()
	b.ReportAllocs()
	for b.Loop() {
		logger.Info(invoker.LogActivation, zap.String("activation_id", "01a1fec5-77f5-75a1-b3e8-f3d374013e48"),
			zap.String("request_id", "req_01M7ZCAXZGSAPPJWBWV2W0WXJH"), zap.String("tenant", "t_bench0"),
			zap.String("namespace", "bench"), zap.String("function", "hello"), zap.Int64("version", 1),
			zap.String("trigger", "http"), zap.String("status", "success"), zap.Float64("duration_ms", 0.286), zap.Bool("cold_start", false))
	}
}
