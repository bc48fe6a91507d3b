package activations

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/codesous/sous/api"
)

// TestActivationsAreEncodedAsByEncodingJSON covers every field that the structs have:
// one that appendJSON lacks makes it fail.
func TestActivationsAreEncodedAsByEncodingJSON(t *testing.T) {
	t.Parallel()
	value := rapid.SampledFrom([]json.RawMessage{
		nil, {}, json.RawMessage(`null`), json.RawMessage(` {"a" : [1, 2.50], "b<>&": "\u2028 é"}`),
		json.RawMessage("\"\u2028\""), json.RawMessage(`{`), json.RawMessage("\xff"),
	})
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "<a&b>", "\u2028\u2029", "\xff\xfe", "\"\\\n\x7f", "é"}))
	number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 0.001, 1e-6, 9.9e-7, 1e21, 9.9e20, math.NaN(), math.Inf(-1)}))
	records := rapid.MakeCustom[Record](rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{
		reflect.TypeFor[json.RawMessage](): value.AsAny(),
		reflect.TypeFor[string]():          text.AsAny(),
		reflect.TypeFor[float64]():         number.AsAny(),
	}})
	rapid.Check(t, func(t *rapid.T) {
		a := records.Draw(t, "activation")
		got, err := encodeRecord(&a)
		want, wantErr := api.EncodeJSON(&a)
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("got error %v, want %v", err, wantErr)
		}
		if err == nil && got != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
