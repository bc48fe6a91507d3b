package child

import (
	"math"
	"reflect"
	"testing"

	"github.com/dop251/goja"
)

// TestFloat16Elements fails where goja's interface of elements is another one than ours.
func TestFloat16Elements(t *testing.T) {
	t.Parallel()
	v, err := goja.New().RunString("new Uint16Array(1)")
	if err != nil {
		t.Fatalf("RunString: %v", err)
	}
	theirs, ours := field(implementation(v.(*goja.Object)), "typedArray").Type(), reflect.TypeFor[elements]()
	if theirs.NumMethod() != ours.NumMethod() {
		t.Fatalf("got %d methods, want %d", theirs.NumMethod(), ours.NumMethod())
	}
	for i := range ours.NumMethod() {
		if got, want := theirs.Method(i), ours.Method(i); got.Name != want.Name || got.Type != want.Type {
			t.Errorf("got method %s %v, want %s %v", got.Name, got.Type, want.Name, want.Type)
		}
	}
}

func TestFloat16Numbers(t *testing.T) {
	t.Parallel()
	for bits := range 1 << 16 {
		v := float16Decode(uint16(bits))
		if got := float16Encode(v); got != uint16(bits) && !math.IsNaN(v) {
			t.Errorf("got bits %04x for %v, want %04x", got, v, bits)
		}
		if next := float16Decode(uint16(bits + 1)); bits&0x7fff < 0x7bff {
			half := v + (next-v)/2
			if got, want := float16Encode(half), uint16(bits+bits&1); got != want {
				t.Errorf("got bits %04x halfway from %v, want %04x", got, v, want)
			}
		}
	}
}
