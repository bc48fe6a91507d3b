package server

import (
	"errors"
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/codesous/sous/invoker"
)

// logDelay is the longest time that log lines about activations are buffered: a write for
// each line costs more than its encoding. A process that is killed loses the lines of that
// time; their activations are in the store.
const logDelay = 250 * time.Millisecond

// newLogger returns a logger that writes to w: lines about activations within logDelay, all
// others immediately, in order. stop writes the buffered lines; lines that are logged after
// it may be lost. newLogger does not fail for validated settings.
func newLogger(w io.Writer, s settings) (logger *zap.Logger, stop func(), err error) {
	level, err := zapcore.ParseLevel(s.LogLevel)
	if err != nil {
		return nil, nil, fmt.Errorf("log-level: %w", err)
	}
	form := zap.NewProductionEncoderConfig()
	form.TimeKey = "time"
	form.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	form.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(form)
	if s.LogFormat == logConsole {
		form.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05")
		form.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(form)
	}
	// Without the Sync of w, which would be called for each line: a line that the kernel
	// has survives the end of this process.
	buffered := &zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(struct{ io.Writer }{w}), FlushInterval: logDelay}
	stop = func() { _ = buffered.Stop() } // an error can be reported nowhere
	return zap.New(promptCore{zapcore.NewCore(encoder, buffered, level)}), stop, nil
}

// promptCore flushes its buffer after each line that is not about an activation. The buffer
// is shared by all loggers that derive from one, so the order of the lines stays.
type promptCore struct{ zapcore.Core }

// With implements zapcore.Core.
func (c promptCore) With(fields []zapcore.Field) zapcore.Core {
	return promptCore{c.Core.With(fields)}
}

// Check implements zapcore.Core. The embedded Check would add the embedded core, and Write
// would not be called.
func (c promptCore) Check(entry zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(entry.Level) {
		return to
	}
	return to.AddCore(entry, c)
}

// Write implements zapcore.Core.
func (c promptCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	err := c.Core.Write(entry, fields)
	if entry.Message == invoker.LogActivation {
		return err
	}
	return errors.Join(err, c.Sync())
}
