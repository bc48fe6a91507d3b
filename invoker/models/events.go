package models

import (
	"bufio"
	"bytes"
	"io"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/ai"
)

// maxEvent bounds an event of a stream, in bytes.
const maxEvent = 1 << 20

// event is a server-sent event.
type event struct{ data []byte }

// events reads server-sent events, with at most ai.MaxAnswerBytes together.
type events struct {
	lines *bufio.Scanner
	total int
}

func newEvents(r io.Reader) *events {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4<<10), maxEvent)
	return &events{lines: lines}
}

// next returns the next event that has data. Errors: io.EOF, CodeHostAIFailed for more bytes than an
// answer may have, those of the exchange.
func (e *events) next() (event, error) {
	var data []byte
	for e.lines.Scan() {
		line := e.lines.Bytes()
		e.total += len(line) + 1
		if e.total > ai.MaxAnswerBytes || len(data) > maxEvent {
			return event{}, api.Errorf(api.CodeHostAIFailed, "the provider's answer has more than %s", api.SizeText(ai.MaxAnswerBytes))
		}
		if len(line) == 0 {
			if data != nil {
				return event{data}, nil
			}
			continue
		}
		if text, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(text, []byte(" "))...)
		}
	}
	err := e.lines.Err()
	switch {
	case err == bufio.ErrTooLong: //nolint:errorlint // Scanner returns it unwrapped
		return event{}, api.Errorf(api.CodeHostAIFailed, "a part of the provider's answer has more than %s", api.SizeText(maxEvent))
	case err == nil && data != nil: // the stream ends without the empty line
		return event{data}, nil
	case err == nil:
		err = io.EOF
	}
	return event{}, err
}
