package jetstream

import (
	"encoding/hex"
	"strings"
)

const hexDigits = "0123456789ABCDEF"

// plain are the bytes that a token of a key contains unescaped.
func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '/'
}

// escape returns the NATS key of a key. Segments become tokens between dots, and each byte
// with a meaning in NATS or in this escape becomes = and two hexadecimal digits:
//
//	gbe:state:tasks:t_acme01.resize:42
//	gbe.state.tasks.t_acme01=2Eresize.42
//
// Different keys have different escapes.
func escape(key string) string {
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c == ':':
			b.WriteByte('.')
		case plain(c):
			b.WriteByte(c)
		default:
			b.WriteByte('=')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	return b.String()
}

// unescape is the inverse of escape; ok is false for tokens that escape never returns.
func unescape(tokens string) (key string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(tokens); i++ {
		switch c := tokens[i]; {
		case c == '.':
			b.WriteByte(':')
		case c != '=':
			b.WriteByte(c)
		default:
			if i+2 >= len(tokens) {
				return "", false
			}
			decoded, err := hex.DecodeString(tokens[i+1 : i+3])
			if err != nil {
				return "", false
			}
			b.WriteByte(decoded[0])
			i += 2
		}
	}
	return b.String(), escape(b.String()) == tokens
}

// subjects returns the narrowest NATS filter for keys that begin with prefix: NATS compares
// complete tokens. For gbe:state:tasks:t_ac it is gbe.state.tasks.> and so matches keys of
// other tenants, which the client drops.
func subjects(prefix string) string {
	last := strings.LastIndexByte(prefix, ':')
	if last < 0 {
		return ">"
	}
	return escape(prefix[:last]) + ".>"
}
