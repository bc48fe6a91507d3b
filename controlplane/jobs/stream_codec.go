package jobs

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// frameElements bounds the elements of a frame: of lists, maps and messages, which take more memory
	// than their bytes. It is that of a request of the HTTP API (jsonsize.Elements).
	frameElements = 40_000
	// elementBytes is how much of the budget an element takes while its frame is handled.
	elementBytes = 400
)

// boundedCodec is the codec of protobuf for messages with a bounded number of elements.
type boundedCodec struct{}

// Name implements connect.Codec.
func (boundedCodec) Name() string { return "proto" }

// Marshal implements connect.Codec.
func (boundedCodec) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", message)
	}
	return proto.Marshal(m)
}

// Unmarshal implements connect.Codec. It counts the elements before it takes memory for them.
func (boundedCodec) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", message)
	}
	if countElements(data, m.ProtoReflect().Descriptor(), frameElements) < 0 {
		return errElements
	}
	return proto.Unmarshal(data, m)
}

var errElements = errors.New("the message has too many elements, or is malformed")

// countElements returns how many of left elements are left after those of an encoded message, or less
// than 0 if they are not enough or the message is malformed. Fields with a length count, and those of
// messages are examined.
func countElements(data []byte, of protoreflect.MessageDescriptor, left int) int {
	for len(data) > 0 && left >= 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return -1
		}
		data = data[n:]
		if kind != protowire.BytesType {
			n = protowire.ConsumeFieldValue(number, kind, data)
			if n < 0 {
				return -1
			}
			data = data[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return -1
		}
		data = data[n:]
		left--
		if field := of.Fields().ByNumber(number); field != nil && field.Message() != nil {
			left = countElements(value, field.Message(), left)
		} else if field != nil && field.IsPacked() {
			left -= len(value)
		}
	}
	return left
}
