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

// logDelay is how long the lines of activations may wait for company: to write
// each by itself costs more than to make it.
const logDelay = 250 * time.Millisecond

// newLogger logs to w: what is about activations within logDelay, and all else at
// once, in order. stop writes what waits, at the end. Validated settings cannot fail
// here.
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
	// Without w's own Sync: there would be one for each line, and a line that the
	// kernel has is safe from our end.
	buffered := &zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(struct{ io.Writer }{w}), FlushInterval: logDelay}
	stop = func() { _ = buffered.Stop() } // there is nobody left to tell
	return zap.New(promptCore{zapcore.NewCore(encoder, buffered, level)}), stop, nil
}

// promptCore has its buffer written with every line but those of activations.
type promptCore struct{ zapcore.Core }

// With implements zapcore.Core.
func (c promptCore) With(fields []zapcore.Field) zapcore.Core {
	return promptCore{c.Core.With(fields)}
}

// Check implements zapcore.Core.
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
