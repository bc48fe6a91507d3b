package jobstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

// EncodeSpec encodes a spec as its header in JSON, a line break, and the payload as it was
// sent. Most readers need only one of the two. JSON has no bare line break within a header,
// so the first one ends it:
//
//	{"namespace":"shop","queue":"mail","payload":null,"created_at_ms":1000,"score":4503599628394496}
//	{"to":"a@example.org"}
//
// Scripts and SpecPrefix rely on namespace and queue being the first two fields; see
// lua/include/spec.lua.
func EncodeSpec(s *api.JobSpec) (string, error) {
	if header, ok := encodePlain(s); ok {
		return header + "\n" + string(s.Payload), nil
	}
	header := *s
	header.Payload = nil
	raw, err := api.EncodeJSON(header)
	if err != nil {
		return "", fmt.Errorf("queue: encode a job: %w", err)
	}
	return string(raw) + "\n" + string(s.Payload), nil
}

// The text between the values of a header without options. The JSON tags of api.JobSpec and
// their order determine it; a test compares both encodings.
const (
	headerQueue   = `","queue":"`
	headerCreated = `","payload":null,"created_at_ms":`
	headerScore   = `,"score":`
)

// encodePlain encodes the header of a job without options, the most frequent kind, as
// EncodeJSON would, in a tenth of the time. ok is false for any other job.
func encodePlain(s *api.JobSpec) (header string, ok bool) {
	rest := *s
	rest.Namespace, rest.Queue, rest.Payload, rest.CreatedAtMS, rest.Score = "", "", nil, 0, 0
	if !reflect.ValueOf(&rest).Elem().IsZero() || !bare(s.Namespace) || !bare(s.Queue) {
		return "", false
	}
	b := make([]byte, 0, 128)
	b = append(append(b, `{"namespace":"`...), s.Namespace...)
	b = append(append(b, headerQueue...), s.Queue...)
	b = strconv.AppendInt(append(b, headerCreated...), s.CreatedAtMS, 10)
	b = strconv.AppendInt(append(b, headerScore...), s.Score, 10)
	return string(append(b, '}')), true
}

// bare reports whether s needs no escapes in JSON.
func bare(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// decodePlain decodes headers that encodePlain wrote. ok is false for any other header.
func decodePlain(header string) (s *api.JobSpec, ok bool) {
	header, begins := strings.CutPrefix(header, `{"namespace":"`)
	header, ends := strings.CutSuffix(header, "}")
	namespace, header, ok1 := strings.Cut(header, headerQueue)
	queue, header, ok2 := strings.Cut(header, headerCreated)
	created, score, ok3 := strings.Cut(header, headerScore)
	if !begins || !ends || !ok1 || !ok2 || !ok3 || !bare(namespace) || !bare(queue) {
		return nil, false
	}
	s = &api.JobSpec{Namespace: namespace, Queue: queue}
	var err1, err2 error
	s.CreatedAtMS, err1 = strconv.ParseInt(created, 10, 64)
	s.Score, err2 = strconv.ParseInt(score, 10, 64)
	return s, err1 == nil && err2 == nil
}

// AuthorOf returns by for a job that may run functions, itself or by its chain, else nil: most jobs
// need no author.
func AuthorOf(s *api.JobSpec, by *api.JobAuthor) *api.JobAuthor {
	if s.Target == nil && s.Chain == nil {
		return nil
	}
	return by
}

// SpecPrefix returns the beginning of the stored spec of every job of q. It relies on the
// order of the first fields of api.JobSpec.
func SpecPrefix(q Queue) string {
	return `{"namespace":"` + q.Namespace + `","queue":"` + q.Name + `",`
}

// DecodeSpec decodes a spec that EncodeSpec wrote.
func DecodeSpec(text string) (*api.JobSpec, error) {
	header, payload, ok := strings.Cut(text, "\n")
	if !ok {
		return nil, errors.New("queue: decode a job: the spec has no payload")
	}
	s, ok := decodePlain(strings.Clone(header)) // the names must not keep the payload in memory
	if !ok {
		s = &api.JobSpec{}
		if err := json.Unmarshal([]byte(header), s); err != nil {
			return nil, fmt.Errorf("queue: decode a job: %w", err)
		}
	}
	s.Payload = json.RawMessage(payload)
	return s, nil
}
