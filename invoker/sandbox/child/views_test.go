package child

import (
	"reflect"
	"testing"

	"github.com/dop251/goja"
)

// TestResizableFields fails where goja's objects have other fields than views.go and
// depth.go set.
func TestResizableFields(t *testing.T) {
	t.Parallel()
	vm := goja.New()
	for source, fields := range map[string][]string{
		"new ArrayBuffer(8)":               {"data", "detached"},
		"new Uint16Array(8)":               {"viewedArrayBuf", "length", "offset", "elemSize"},
		"new DataView(new ArrayBuffer(8))": {"viewedArrayBuf", "byteLen", "byteOffset"},
	} {
		v, err := vm.RunString(source)
		if err != nil {
			t.Fatalf("RunString(%s): %v", source, err)
		}
		impl := implementation(v.(*goja.Object))
		for _, name := range fields {
			if !impl.FieldByName(name).IsValid() {
				t.Errorf("%s: got no field %s, want one", source, name)
			}
		}
	}
	machine := field(reflect.ValueOf(vm).Elem(), "vm").Elem()
	if calls := machine.FieldByName("callStack"); !calls.IsValid() || calls.Kind() != reflect.Slice {
		t.Errorf("got %v, want the slice callStack", calls)
	}
}
