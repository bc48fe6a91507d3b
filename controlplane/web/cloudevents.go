package web

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/codesous/sous/api"
)

// maxCloudEvent bounds the body of a request that carries a CloudEvent, in bytes: its data is
// in the event twice.
const maxCloudEvent = 1 << 20

// Limits of the attributes of a CloudEvent, its data included, and of the events of a batch. Those of
// a body of maxCloudEvent would take many times its memory.
const (
	maxCloudAttributes = 100
	maxCloudBatch      = 1000
)

// cloudEvents holds the CloudEvents of a request, in their JSON format: one event, or a
// batch of them as an array. Both are nil for none.
type cloudEvents struct{ one, batch json.RawMessage }

// size returns the number of bytes of the JSON.
func (c cloudEvents) size() int { return len(c.one) + len(c.batch) }

// cloudEventsOf returns the CloudEvents of a request (CloudEvents 1.0, HTTP protocol binding).
// An event that is malformed, too large or beyond maxCloudAttributes is none, and so is a batch with
// one: the function has the headers and the body, and decides.
//
//	Content-Type: application/cloudevents+json        structured (3.2): the body is the event
//	Content-Type: application/cloudevents-batch+json  batched (3.3): the body is an array of them
//	Ce-Specversion: 1.0, Ce-Id: …, Content-Type: …    binary (3.1): headers are attributes, the body is data
func cloudEventsOf(r *http.Request, body []byte) cloudEvents {
	if len(body) > maxCloudEvent {
		return cloudEvents{}
	}
	contentType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(contentType)) {
	case "application/cloudevents+json":
		return cloudEvents{one: structuredCloudEvent(body)}
	case "application/cloudevents-batch+json":
		return cloudEvents{batch: batchedCloudEvents(body)}
	}
	if r.Header["Ce-Specversion"] == nil {
		return cloudEvents{}
	}
	event := map[string]json.RawMessage{}
	binaryCloudEvent(event, r.Header, body)
	attributes := make([]attribute, 0, len(event))
	for name, value := range event {
		attributes = append(attributes, attribute{name, value})
	}
	one, _ := appendCloudEvent(nil, attributes)
	return cloudEvents{one: one}
}

// structuredCloudEvent returns an event of the JSON format, nil if it is malformed.
func structuredCloudEvent(event []byte) json.RawMessage {
	if !json.Valid(event) {
		return nil
	}
	one, _ := appendCloudEvent(nil, attributesOf(event, nil))
	return one
}

// batchedCloudEvents returns the events of the JSON batch format, which may have none; nil if
// one of them is malformed, or if they are more than maxCloudBatch.
func batchedCloudEvents(events []byte) json.RawMessage {
	n := 0
	few := json.Valid(events) && elements(events, func(json.RawMessage) bool { n++; return n <= maxCloudBatch })
	if !few {
		return nil
	}
	out := append(make([]byte, 0, len(events)), '[')
	var attributes []attribute // its memory serves all events
	ok := elements(events, func(event json.RawMessage) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		attributes = attributesOf(event, attributes[:0])
		var well bool
		out, well = appendCloudEvent(out, attributes)
		return well
	})
	if !ok {
		return nil
	}
	return append(out, ']')
}

// attribute is a member of a CloudEvent.
type attribute struct {
	name  string
	value json.RawMessage
}

// attributesOf appends the members of an event to dst, none if it is no object, and at most one more
// than an event may have.
func attributesOf(event json.RawMessage, dst []attribute) []attribute {
	members(event, func(name string, value json.RawMessage) bool {
		dst = append(dst, attribute{name, value})
		return len(dst) <= maxCloudAttributes
	})
	return dst
}

// appendCloudEvent appends the JSON of an event, whose attributes it sorts; the last one of a name
// prevails. It returns nil and false for an event that lacks a required attribute, or that has more
// than maxCloudAttributes.
func appendCloudEvent(dst []byte, event []attribute) ([]byte, bool) {
	slices.SortStableFunc(event, func(a, b attribute) int { return strings.Compare(a.name, b.name) })
	if len(event) > maxCloudAttributes || !hasRequired(event) {
		return nil, false
	}
	dst = append(dst, '{')
	for i, a := range event {
		if i+1 < len(event) && event[i+1].name == a.name {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(api.AppendJSONString(dst, a.name), ':')
		dst = append(dst, a.value...)
	}
	return append(dst, '}'), true
}

// hasRequired reports whether each required attribute of an event is a text; the last one of a name
// prevails.
func hasRequired(event []attribute) bool {
	for _, name := range []string{"specversion", "id", "source", "type"} {
		var value []byte
		for _, a := range event {
			if a.name == name {
				value, _ = text(a.value)
			}
		}
		if len(value) == 0 {
			return false
		}
	}
	return true
}

// binaryCloudEvent sets the attributes and the data of an event in binary mode. Data of a JSON
// type is a value, other text a string, and everything else base64.
func binaryCloudEvent(event map[string]json.RawMessage, header http.Header, body []byte) {
	for name, values := range header {
		attribute, ok := strings.CutPrefix(name, "Ce-")
		if !ok || len(values) == 0 {
			continue
		}
		value := values[0]
		if decoded, err := url.PathUnescape(value); err == nil {
			value = decoded
		}
		event[strings.ToLower(attribute)] = api.AppendJSONString(nil, value)
	}
	delete(event, "data")
	contentType := header.Get("Content-Type")
	if contentType != "" {
		event["datacontenttype"] = api.AppendJSONString(nil, contentType)
	}
	essence, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	essence = strings.TrimSpace(essence)
	isJSON := essence == "application/json" || strings.HasSuffix(essence, "+json")
	switch {
	case len(body) == 0:
	case isJSON && json.Valid(body):
		event["data"] = body
	case isText(contentType, body):
		event["data"] = api.AppendJSONString(nil, string(body))
	default:
		event["data_base64"] = api.AppendJSONString(nil, base64.StdEncoding.EncodeToString(body))
	}
}
