package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// AppendMessage appends a frame of a JSON head and a blob (Hello, Assign, Ready,
// Refused, Verdict).
func AppendMessage(dst []byte, kind Kind, head any, blob []byte) ([]byte, error) {
	dst, at := begin(dst, kind)
	j, err := json.Marshal(head)
	if err != nil {
		return dst[:at], err
	}
	if len(j) > MaxHead {
		return dst[:at], errHead
	}
	dst = appendSized(dst, j)
	dst = append(dst, blob...)
	return end(dst, at)
}

// ParseMessage reads the payload of a frame that AppendMessage made. blob aliases payload.
func ParseMessage(payload []byte, head any) (blob []byte, err error) {
	j, blob, err := cutHead(payload)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(j, head); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return blob, nil
}

// AppendInvoke appends an Invoke frame. Its head is binary, not JSON, because each activation
// has one and most functions read none of its fields. The layout of its payload:
//
//	u64 DeadlineMS | u32 Attempt | u8 Flags
//	u32 length | ActivationID, and likewise RequestID, Ref, Trigger, Principal,
//	             LastHeartbeat, Job, Checkpoint
//	event (the rest)
func AppendInvoke(dst []byte, h *InvokeHead, event []byte) ([]byte, error) {
	dst, at := begin(dst, KindInvoke)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.DeadlineMS))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Attempt))
	dst = append(dst, h.Flags)
	dst = appendSized(dst, h.ActivationID)
	dst = appendSized(dst, h.RequestID)
	dst = appendSized(dst, h.Ref)
	dst = appendSized(dst, h.Trigger)
	dst = appendSized(dst, h.Principal)
	dst = appendSized(dst, h.LastHeartbeat)
	dst = appendSized(dst, h.Job)
	dst = appendSized(dst, h.Checkpoint)
	dst = append(dst, event...)
	return end(dst, at)
}

const invokeHeader = 8 + 4 + 1

// ParseInvoke reads an Invoke payload. The results alias payload.
func ParseInvoke(payload []byte) (h InvokeHead, event []byte, err error) {
	if len(payload) < invokeHeader {
		return h, nil, ErrFrame
	}
	h.DeadlineMS = int64(binary.BigEndian.Uint64(payload))
	h.Attempt = int(binary.BigEndian.Uint32(payload[8:]))
	h.Flags = payload[12]
	rest := payload[invokeHeader:]
	var id, request []byte
	for _, field := range []*[]byte{&id, &request, &h.Ref, &h.Trigger, &h.Principal, &h.LastHeartbeat, &h.Job, &h.Checkpoint} {
		*field, rest, err = cutSized(rest)
		if err != nil {
			return h, nil, err
		}
	}
	h.ActivationID, h.RequestID = string(id), string(request)
	return h, rest, nil
}

// AppendDone appends a Done frame. The answer "ok" after 1 ms, with a peak of 2 MiB, is
//
//	00 00 00 17 06             23 bytes follow, KindDone
//	00 00                      OutcomeValue, no flags
//	00 00 00 00 00 0f 42 40    CPUNanos 1,000,000
//	00 00 00 00 00 20 00 00    MemoryPeak 2,097,152
//	22 6f 6b 22                Body "ok"
func AppendDone(dst []byte, d Done) ([]byte, error) {
	dst, at := begin(dst, KindDone)
	dst = append(dst, byte(d.Outcome), d.Flags)
	dst = binary.BigEndian.AppendUint64(dst, d.CPUNanos)
	dst = binary.BigEndian.AppendUint64(dst, d.MemoryPeak)
	dst = append(dst, d.Body...)
	return end(dst, at)
}

// ParseDone reads a Done payload. Body aliases payload. ParseDone does not check Body, which the parent does
// (outcome.go).
func ParseDone(payload []byte) (Done, error) {
	if len(payload) < doneHeader || payload[0] > byte(OutcomeTimeout) {
		return Done{}, ErrFrame
	}
	return Done{
		Outcome:    Outcome(payload[0]),
		Flags:      payload[1],
		CPUNanos:   binary.BigEndian.Uint64(payload[2:]),
		MemoryPeak: binary.BigEndian.Uint64(payload[10:]),
		Body:       payload[doneHeader:],
	}, nil
}

// AppendAnswer appends an Answer frame, which ParseDone reads. Only OutcomeValue and
// OutcomeUndefined are answers.
func AppendAnswer(dst []byte, outcome Outcome, body []byte) ([]byte, error) {
	at := len(dst)
	dst, err := AppendDone(dst, Done{Outcome: outcome, Body: body})
	if err == nil {
		dst[at+4] = byte(KindAnswer)
	}
	return dst, err
}

// AppendHostCall appends a HostCall frame.
func AppendHostCall(dst []byte, c HostCall) ([]byte, error) {
	if len(c.Name) > 255 {
		return dst, ErrFrame
	}
	if len(c.Head) > MaxHead {
		return dst, errHead
	}
	dst, at := begin(dst, KindHostCall)
	dst = binary.BigEndian.AppendUint32(dst, c.ID)
	dst = append(dst, byte(len(c.Name)))
	dst = append(dst, c.Name...)
	dst = appendSized(dst, c.Head)
	dst = append(dst, c.Blob...)
	return end(dst, at)
}

// ParseHostCall reads a HostCall payload. Head and Blob alias payload.
func ParseHostCall(payload []byte) (HostCall, error) {
	if len(payload) < 5 || len(payload) < 5+int(payload[4]) {
		return HostCall{}, ErrFrame
	}
	c := HostCall{ID: binary.BigEndian.Uint32(payload)}
	rest := payload[5:]
	c.Name, rest = string(rest[:payload[4]]), rest[payload[4]:]
	var err error
	c.Head, c.Blob, err = cutHead(rest)
	return c, err
}

// AppendAbandon appends an Abandon frame.
func AppendAbandon(dst []byte, id uint32) ([]byte, error) {
	dst, at := begin(dst, KindAbandon)
	return end(binary.BigEndian.AppendUint32(dst, id), at)
}

// ParseAbandon reads an Abandon payload.
func ParseAbandon(payload []byte) (id uint32, err error) {
	if len(payload) != 4 {
		return 0, ErrFrame
	}
	return binary.BigEndian.Uint32(payload), nil
}

// AppendHostReply appends a HostReply frame. Its head may exceed MaxHead, because it comes
// from the parent.
func AppendHostReply(dst []byte, r HostReply) ([]byte, error) {
	dst, at := begin(dst, KindHostReply)
	dst = binary.BigEndian.AppendUint32(dst, r.ID)
	ok := byte(0)
	if r.OK {
		ok = 1
	}
	dst = append(dst, ok)
	dst = appendSized(dst, r.Head)
	dst = append(dst, r.Blob...)
	return end(dst, at)
}

// ParseHostReply reads a HostReply payload. Head and Blob alias payload.
func ParseHostReply(payload []byte) (HostReply, error) {
	if len(payload) < 5 || payload[4] > 1 {
		return HostReply{}, ErrFrame
	}
	r := HostReply{ID: binary.BigEndian.Uint32(payload), OK: payload[4] == 1}
	var err error
	r.Head, r.Blob, err = cutSized(payload[5:])
	return r, err
}

const logHeader = 8 + 1 + 1 + 4

// LogRecordOverhead is the number of bytes that a record counts in addition to its text, so
// that the limit on the bytes of a log also limits its empty lines.
const LogRecordOverhead = 32

// BeginLog starts a Log frame in dst; AppendLogRecord adds to it and EndLog
// closes it.
func BeginLog(dst []byte) ([]byte, int) { return begin(dst, KindLog) }

// AppendLogRecord adds one record to an open Log frame: u64 TSMS, u8 Level, u8 JSON, u32
// length, Text.
func AppendLogRecord(dst []byte, l LogRecord) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(l.TSMS))
	isJSON := byte(0)
	if l.JSON {
		isJSON = 1
	}
	dst = append(dst, l.Level, isJSON)
	return appendSized(dst, l.Text)
}

// EndLog closes the Log frame that BeginLog started at the given offset.
func EndLog(dst []byte, at int) ([]byte, error) { return end(dst, at) }

// ParseLog calls each for every record of a Log payload, in order. Text aliases payload.
func ParseLog(payload []byte, each func(LogRecord)) error {
	for len(payload) > 0 {
		if len(payload) < logHeader || int(payload[8]) >= len(Levels) || payload[9] > 1 {
			return ErrFrame
		}
		l := LogRecord{
			TSMS:  int64(binary.BigEndian.Uint64(payload)),
			Level: payload[8],
			JSON:  payload[9] == 1,
		}
		var err error
		n := binary.BigEndian.Uint32(payload[10:])
		l.Text, payload, err = cut(payload[logHeader:], n)
		if err != nil {
			return err
		}
		each(l)
	}
	return nil
}

// appendSized appends b behind its length as a u32.
func appendSized[T string | []byte](dst []byte, b T) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b)))
	return append(dst, b...)
}

// cutSized splits b after a head that appendSized appended. Both results alias b. Errors:
// ErrFrame if b is shorter.
func cutSized(b []byte) (head, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, ErrFrame
	}
	return cut(b[4:], binary.BigEndian.Uint32(b))
}

var errHead = fmt.Errorf("%w: a head of more than %d bytes", ErrFrame, MaxHead)

// cutHead is cutSized for the head of a message or of a HostCall, which has at most MaxHead
// bytes. Errors: also errHead for a longer one.
func cutHead(b []byte) (head, rest []byte, err error) {
	head, rest, err = cutSized(b)
	if err == nil && len(head) > MaxHead {
		err = errHead
	}
	return head, rest, err
}

// cut splits b after n bytes. Errors: ErrFrame if b is shorter.
func cut(b []byte, n uint32) (head, rest []byte, err error) {
	if uint64(n) > uint64(len(b)) {
		return nil, nil, ErrFrame
	}
	return b[:n], b[n:], nil
}
