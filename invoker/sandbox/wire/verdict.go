package wire

import "encoding/binary"

// VerdictKind is what a handler decides about its job.
type VerdictKind uint8

// The kinds of verdicts. Of Ack and Retry, an activation sends at most one for each message,
// once.
const (
	VerdictAck     VerdictKind = 1 // the job is complete, whatever the activation does afterwards
	VerdictRetry   VerdictKind = 2 // the attempt has failed, whatever the activation does afterwards
	VerdictNoRetry VerdictKind = 3 // if the attempt fails, it is the last one
)

// Verdict is a decision of a handler about its job. It is sent when the handler makes it, so
// that it holds also if the child is killed later.
type Verdict struct {
	Kind VerdictKind
	// Message is the position of the message in its batch, from 0.
	Message uint32
	// DelayMS is the time between a Retry and the next attempt, in milliseconds; -1 stands for
	// the job's backoff.
	DelayMS int64
}

// AppendVerdict appends a Verdict frame: u8 Kind | u32 Message | i64 DelayMS.
func AppendVerdict(dst []byte, v Verdict) ([]byte, error) {
	dst, at := begin(dst, KindVerdict)
	dst = binary.BigEndian.AppendUint32(append(dst, byte(v.Kind)), v.Message)
	return end(binary.BigEndian.AppendUint64(dst, uint64(v.DelayMS)), at)
}

// ParseVerdict reads a Verdict payload. It does not check Message and DelayMS, which the parent
// does.
func ParseVerdict(payload []byte) (Verdict, error) {
	if len(payload) != 13 || payload[0] < byte(VerdictAck) || payload[0] > byte(VerdictNoRetry) {
		return Verdict{}, ErrFrame
	}
	return Verdict{
		Kind: VerdictKind(payload[0]), Message: binary.BigEndian.Uint32(payload[1:]), DelayMS: int64(binary.BigEndian.Uint64(payload[5:])),
	}, nil
}
