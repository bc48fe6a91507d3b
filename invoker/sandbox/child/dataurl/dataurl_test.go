package dataurl

import "testing"

func TestParse(t *testing.T) {
	t.Parallel()
	const plain = "text/plain;charset=US-ASCII"
	for _, tt := range []struct {
		url, data, mediaType string
		ok                   bool
	}{
		{"data:,X", "X", plain, true},
		{"data:", "", "", false},
		{"data:text/html", "", "", false},
		{"data:text/html;charset=x", "", "", false},
		{"data:,a,b#c", "a,b", plain, true},
		{"data:,%41%zz%4", "A%zz%4", plain, true},
		{"data:,%FF", "\xff", plain, true},
		{"data:text/html,<b>", "<b>", "text/html", true},
		{"data: TEXT/Html ;X=\"y\";x=z;,X", "X", "text/html;x=y", true},
		{"data:;charset=x,X", "X", "text/plain;charset=x", true},
		{"data:;charset,X", "X", "text/plain", true},
		{"data:;a=;b=1,X", "X", "text/plain;b=1", true},
		{"data:text/plain;x=\"a\\\"b c\" z;y=2,X", "X", "text/plain;x=\"a\\\"b c\";y=2", true},
		{"data:text/plain;x=\"a,X", "X", "text/plain;x=a", true},
		{"data:text,X", "X", plain, true},
		{"data:te xt/plain,X", "X", plain, true},
		{"data:;base64,WA==", "X", plain, true},
		{"data:;base64,W%20A", "X", plain, true},
		{"data:application/wasm;  BASE64,AGFzbQ", "\x00asm", "application/wasm", true},
		{"data:;base64;x=y,WA", "WA", "text/plain;x=y", true},
		{"data:text/html;x=y\f,X", "X", "text/html;x=y", true},
		{"data:text/html\f;x=y,X", "X", plain, true},
		{"data:base64,WA", "WA", plain, true},
		{"data:;base64,W", "", "", false},
		{"data:;base64,WA=", "", "", false},
		{"data:;base64,W_", "", "", false},
	} {
		data, mediaType, ok := Parse(tt.url)
		if string(data) != tt.data && ok || mediaType != tt.mediaType || ok != tt.ok {
			t.Errorf("Parse(%q) = %q, %q, %v, want %q, %q, %v", tt.url, data, mediaType, ok, tt.data, tt.mediaType, tt.ok)
		}
	}
}
