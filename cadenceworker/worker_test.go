package cadenceworker

import (
	"errors"
	"testing"

	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/bindings"
)

// TestStateChangesAreLoggedOnce holds each change of a worker's state to one log line, and a
// repeated error to none.
func TestStateChangesAreLoggedOnce(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.InfoLevel)
	w := &activityWorker{b: &binding{logger: zap.New(core)}, stored: &bindings.Record{}}
	for _, step := range []struct {
		name   string
		change func()
		level  zapcore.Level
		state  api.BindingState
	}{
		{"an unreachable server", func() { w.setError(errors.New("connection refused")) }, zapcore.WarnLevel, api.BindingFailing},
		{"no domain", func() { w.setError(&shared.EntityNotExistsError{}) }, zapcore.InfoLevel, api.BindingWaiting},
		{"a poll that succeeded", w.markRunning, zapcore.InfoLevel, api.BindingRunning},
	} {
		step.change()
		step.change()
		lines := logs.TakeAll()
		if len(lines) != 1 || lines[0].Level != step.level {
			t.Errorf("%s, twice: got the log lines %+v, want one at level %s", step.name, lines, step.level)
		}
		if state, _ := w.status(); state != step.state {
			t.Errorf("%s: got the state %s, want %s", step.name, state, step.state)
		}
	}
}
