package activations

import (
	"fmt"
	"math"
	"strconv"

	"github.com/codesous/sous/api"
)

// encodeRecord is storage.Encode for an activation, without reflection: one is written for
// every invocation. json_test.go compares the two.
func encodeRecord(a *Record) (string, error) {
	raw, err := a.appendJSON(make([]byte, 0, 768+len(a.Result)+len(a.Trigger.Source)))
	if err != nil {
		return "", fmt.Errorf("encode %T: %w", a, err)
	}
	return string(raw), nil
}

// appendJSON appends a in the form of api.EncodeJSON, the fields in the order of the
// structs. A field that is added to the structs must be added here.
func (a *Record) appendJSON(b []byte) ([]byte, error) {
	b, err := a.appendIdentity(b)
	if err != nil {
		return nil, err
	}
	b = appendText(b, `,"status":`, string(a.Status))
	b = appendNumber(b, `,"start_ms":`, a.StartMS)
	if a.EndMS != 0 {
		b = appendNumber(b, `,"end_ms":`, a.EndMS)
	}
	b = appendNumber(b, `,"duration_ms":`, a.DurationMS)
	b = appendNumber(b, `,"deadline_ms":`, a.DeadlineMS)
	b = appendNumber(b, `,"attempt":`, int64(a.Attempt))
	b = appendOptional(b, `,"job_id":`, a.JobID)
	b = appendOptional(b, `,"retry_of":`, a.RetryOf)
	b = appendOptional(b, `,"request_id":`, a.RequestID)
	b, err = a.appendOutcome(b)
	if err != nil {
		return nil, err
	}
	b = appendOptional(b, `,"event_sha256":`, a.EventSHA256)
	b = appendOptional(b, `,"claim":`, a.Claim)
	if a.LeaseEpoch != 0 {
		b = appendNumber(b, `,"lease_epoch":`, a.LeaseEpoch)
	}
	if a.ResultBytes != 0 {
		b = appendNumber(b, `,"result_bytes":`, int64(a.ResultBytes))
	}
	if a.RetentionMS != 0 {
		b = appendNumber(b, `,"retention_ms":`, a.RetentionMS)
	}
	b = appendOptional(b, `,"events":`, a.Events)
	return append(b, '}'), nil
}

// appendIdentity appends the fields that identify the invocation.
func (a *Record) appendIdentity(b []byte) ([]byte, error) {
	b = appendText(b, `{"activation_id":`, a.ActivationID)
	b = appendText(b, `,"tenant":`, a.Tenant)
	b = appendText(b, `,"namespace":`, a.Namespace)
	b = appendText(b, `,"function":`, a.Function)
	b = append(b, `,"ref":`...)
	b = a.Ref.AppendJSON(b)
	b = append(b, `,"trigger":`...)
	return a.Trigger.AppendJSON(b)
}

// appendOutcome appends the fields that the run of the function determines.
func (a *Record) appendOutcome(b []byte) ([]byte, error) {
	var err error
	if len(a.Result) > 0 {
		b = append(b, `,"result":`...)
		b, err = api.AppendJSONValue(b, a.Result)
		if err != nil {
			return nil, err
		}
	}
	b = append(b, `,"result_truncated":`...)
	b = strconv.AppendBool(b, a.ResultTruncated)
	b = append(b, `,"logs_truncated":`...)
	b = strconv.AppendBool(b, a.LogsTruncated)
	b = append(b, `,"cold_start":`...)
	b = strconv.AppendBool(b, a.ColdStart)
	b = append(b, `,"cpu_ms":`...)
	b, err = appendFloat(b, a.CPUMS)
	if err != nil {
		return nil, err
	}
	b = appendNumber(b, `,"memory_peak_bytes":`, a.MemoryPeakBytes)
	if a.EgressBytes != 0 {
		b = appendNumber(b, `,"egress_bytes":`, a.EgressBytes)
	}
	if a.StreamBytes != 0 {
		b = appendNumber(b, `,"stream_bytes":`, a.StreamBytes)
	}
	if a.FirstByteMS != 0 {
		b = append(b, `,"first_byte_ms":`...)
		b, err = appendFloat(b, a.FirstByteMS)
		if err != nil {
			return nil, err
		}
	}
	b = append(b, `,"error":`...)
	if a.Error == nil {
		return append(b, "null"...), nil
	}
	failure, err := api.EncodeJSON(a.Error)
	return append(b, failure...), err
}

// The helpers below take a member's name with the comma before it and the colon
// behind it.

func appendText(b []byte, name, value string) []byte {
	return api.AppendJSONString(append(b, name...), value)
}

func appendOptional(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendText(b, name, value)
}

func appendNumber(b []byte, name string, value int64) []byte {
	return strconv.AppendInt(append(b, name...), value, 10)
}

// appendFloat appends f in the form of encoding/json. It leaves numbers that encoding/json
// writes with an exponent, and NaN and infinities, which it refuses, to encoding/json.
func appendFloat(b []byte, f float64) ([]byte, error) {
	if size := math.Abs(f); f != 0 && !(size >= 1e-6 && size < 1e21) {
		raw, err := api.EncodeJSON(f)
		return append(b, raw...), err
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64), nil
}
