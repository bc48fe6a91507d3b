package web

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/codesous/sous/api"
)

// maxCloudEvent bounds the body of a request that carries a CloudEvent, in bytes: its data is
// in the event twice.
const maxCloudEvent = 1 << 20

// cloudEvents holds the CloudEvents of a request, in their JSON format: one event, or a
// batch of them as an array. Both are nil for none.
type cloudEvents struct{ one, batch json.RawMessage }

// size returns the number of bytes of the JSON.
func (c cloudEvents) size() int { return len(c.one) + len(c.batch) }

// cloudEventsOf returns the CloudEvents of a request (CloudEvents 1.0, HTTP protocol binding).
// An event that is malformed or too large is none, and so is a batch with one: the function
// has the headers and the body, and decides.
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
	return cloudEvents{one: encodeCloudEvent(event)}
}

// structuredCloudEvent returns an event of the JSON format, nil if it is malformed.
func structuredCloudEvent(text []byte) json.RawMessage {
	var event map[string]json.RawMessage
	if err := json.Unmarshal(text, &event); err != nil {
		return nil
	}
	return encodeCloudEvent(event)
}

// batchedCloudEvents returns the events of the JSON batch format, which may have none; nil if
// one of them is malformed.
func batchedCloudEvents(text []byte) json.RawMessage {
	var events []json.RawMessage
	if err := json.Unmarshal(text, &events); err != nil || events == nil {
		return nil
	}
	for i, event := range events {
		events[i] = structuredCloudEvent(event)
		if events[i] == nil {
			return nil
		}
	}
	out, err := json.Marshal(events)
	if err != nil {
		return nil // cannot be: the events are JSON
	}
	return out
}

// encodeCloudEvent returns the JSON of an event, nil if it lacks a required attribute.
func encodeCloudEvent(event map[string]json.RawMessage) json.RawMessage {
	for _, name := range []string{"specversion", "id", "source", "type"} {
		var value string
		if err := json.Unmarshal(event[name], &value); err != nil || value == "" {
			return nil
		}
	}
	text, err := json.Marshal(event)
	if err != nil {
		return nil // of a header that is no text
	}
	return text
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
