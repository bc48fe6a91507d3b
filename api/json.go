package api

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// EncodeJSON is json.Marshal without the escaping of <, > and &: results, events and
// log messages are stored and returned as functions wrote them. Its output must not be
// written into an HTML page unescaped.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// AppendJSONString appends s as EncodeJSON encodes it. Bytes that are not UTF-8
// become U+FFFD.
func AppendJSONString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := EncodeJSON(s)
			if err != nil {
				return append(b, `""`...) // a string can always be encoded
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// AppendJSON appends r as EncodeJSON encodes it.
func (r Ref) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	if r.Alias != "" {
		b = append(b, `"alias":`...)
		b = AppendJSONString(b, r.Alias)
	}
	if r.Version != 0 {
		if r.Alias != "" {
			b = append(b, ',')
		}
		b = append(b, `"version":`...)
		b = strconv.AppendInt(b, r.Version, 10)
	}
	return append(b, '}')
}

// AppendJSON appends t as EncodeJSON encodes it. It fails if Source is not JSON.
func (t Trigger) AppendJSON(b []byte) ([]byte, error) {
	b = append(b, `{"type":`...)
	b = AppendJSONString(b, t.Type)
	var err error
	if len(t.Source) > 0 {
		b = append(b, `,"source":`...)
		b, err = AppendJSONValue(b, t.Source)
	}
	return append(b, '}'), err
}

// AppendJSON appends p as EncodeJSON encodes it.
func (p Principal) AppendJSON(b []byte) []byte {
	b = append(b, `{"sub":`...)
	b = AppendJSONString(b, p.Sub)
	b = append(b, `,"roles":`...)
	if p.Roles == nil {
		return append(b, "null}"...)
	}
	b = append(b, '[')
	for i, role := range p.Roles {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendJSONString(b, role)
	}
	return append(b, "]}"...)
}

// AppendJSONValue appends raw without insignificant space. It fails if raw is not JSON.
func AppendJSONValue(b []byte, raw json.RawMessage) ([]byte, error) {
	buffer := bytes.NewBuffer(b)
	err := json.Compact(buffer, raw)
	return buffer.Bytes(), err
}
