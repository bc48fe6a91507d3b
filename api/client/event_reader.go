package client

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
)

// The names of events that a log stream carries; an event without a name is a
// message, as in the HTML standard.
const (
	eventEnd = "end"
	eventLog = "log"
	// The changes and the ends of tasks.
	eventProgress = "progress"
	eventTerminal = "terminal"
	eventMessage  = "message"
	eventReset    = "reset"
	eventGap      = "gap"
)

// maxEventLine bounds one line of a stream: a log line fills at most a chunk.
const maxEventLine = 1 << 20

// sentEvent is one server-sent event.
type sentEvent struct {
	name string
	id   string
	data []byte
}

// eventReader reads server-sent events (HTML standard, "9.2.6 Interpreting an
// event stream"), without the retry field.
type eventReader struct {
	lines *bufio.Scanner
}

func newEventReader(r io.Reader) *eventReader {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4<<10), maxEventLine)
	return &eventReader{lines: lines}
}

// next returns the next event that has a name, data or an id. The end of the stream is an error:
// only an end event ends a log.
func (r *eventReader) next() (sentEvent, error) {
	var e sentEvent
	for r.lines.Scan() {
		line := bytes.TrimSuffix(r.lines.Bytes(), []byte("\r"))
		if len(line) == 0 {
			if e.name != "" || e.data != nil || e.id != "" {
				return e, nil
			}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":")) // a comment has the empty field
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			e.name = string(value)
		case "id":
			e.id = string(value)
		case "data":
			if e.data != nil {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
		}
	}
	if err := r.lines.Err(); err != nil {
		return sentEvent{}, err
	}
	return sentEvent{}, io.ErrUnexpectedEOF
}

func readError(res *http.Response) (*answer, error) {
	body, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes))
	if err != nil {
		return nil, err
	}
	return &answer{status: res.StatusCode, header: res.Header, body: body}, nil
}
