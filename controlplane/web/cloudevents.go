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

// cloudEventOf returns the CloudEvent of a request in its JSON format, nil if it carries none
// (CloudEvents 1.0, HTTP protocol binding). One that is malformed or too large is none: the
// function has the headers and the body, and decides.
//
//	Content-Type: application/cloudevents+json      structured: the body is the event
//	Ce-Specversion: 1.0, Ce-Id: …, Content-Type: …  binary: headers are attributes, the body is data
func cloudEventOf(r *http.Request, body []byte) json.RawMessage {
	contentType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	structured := strings.EqualFold(strings.TrimSpace(contentType), "application/cloudevents+json")
	if !structured && r.Header["Ce-Specversion"] == nil || len(body) > maxCloudEvent {
		return nil
	}
	event := map[string]json.RawMessage{}
	if structured {
		if err := json.Unmarshal(body, &event); err != nil || event == nil {
			return nil
		}
	} else {
		binaryCloudEvent(event, r.Header, body)
	}
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
