package child

import (
	"encoding/binary"
	"math"
	"reflect"
	"unsafe"

	"github.com/dop251/goja"
)

// elements is goja's interface of the elements of a typed array, which goja does not export.
// The methods have the names, the order and the types of goja's, so that the method table of
// a value of this interface serves for a value of goja's. TestFloat16Elements compares them.
type elements interface {
	toRaw(v goja.Value) uint64
	get(idx int) goja.Value
	set(idx int, value goja.Value)
	getRaw(idx int) uint64
	setRaw(idx int, raw uint64)
	less(i, j int) bool
	swap(i, j int)
	typeMatch(v goja.Value) bool
	export(offset int, length int) any
	exportType() reflect.Type
}

// float16Array is the elements of a Float16Array. data is that of the buffer, which may
// change.
type float16Array struct {
	vm   *goja.Runtime
	data *[]byte
}

// float16View makes the Uint16Array that is the first argument a Float16Array; the second
// is the constructor. Numbers of both take two bytes.
func float16View(r *realm, call goja.FunctionCall) goja.Value {
	object, ok := call.Argument(0).(*goja.Object)
	ctor, isObject := call.Argument(1).(*goja.Object)
	if !ok || !isObject || object.ExportType() != reflect.TypeFor[[]uint16]() {
		panic(r.vm.NewTypeError("the receiver is not a Uint16Array"))
	}
	impl := implementation(object)
	field(impl, "defaultCtor").Set(reflect.ValueOf(ctor))
	buffer := field(impl, "viewedArrayBuf").Elem()
	var own elements = &float16Array{r.vm, field(buffer, "data").Addr().Interface().(*[]byte)}
	place := field(impl, "typedArray").Addr().UnsafePointer()
	*(*[2]unsafe.Pointer)(place) = *(*[2]unsafe.Pointer)(unsafe.Pointer(&own)) //nolint:gosec // see elements
	return object
}

func (a *float16Array) at(idx int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(*a.data)), 2*idx)), 2) //nolint:gosec // goja checks indexes against lengths
}

func (a *float16Array) bits(idx int) uint16 { return binary.LittleEndian.Uint16(a.at(idx)) }

// getRaw returns the bits of an element, for comparison: those of 0 also for -0, and the
// same for each NaN.
func (a *float16Array) getRaw(idx int) uint64 {
	if a.bits(idx) == 0x8000 {
		return 0
	}
	return uint64(float16Encode(a.float(idx)))
}

func (a *float16Array) setRaw(idx int, raw uint64) {
	binary.LittleEndian.PutUint16(a.at(idx), uint16(raw)) //nolint:gosec // raw is of toRaw
}

func (a *float16Array) float(idx int) float64 { return float16Decode(a.bits(idx)) }

func (a *float16Array) get(idx int) goja.Value { return a.vm.ToValue(a.float(idx)) }

func (a *float16Array) toRaw(v goja.Value) uint64 { return uint64(float16Encode(v.ToFloat())) }

func (a *float16Array) set(idx int, value goja.Value) {
	a.setRaw(idx, a.toRaw(value))
}

// less is the order of sort: NaN last, -0 before 0.
func (a *float16Array) less(i, j int) bool {
	x, y := a.float(i), a.float(j)
	switch {
	case math.IsNaN(x):
		return false
	case math.IsNaN(y):
		return true
	case x == 0 && y == 0:
		return math.Signbit(x) && !math.Signbit(y)
	}
	return x < y
}

func (a *float16Array) swap(i, j int) {
	x, y := a.bits(i), a.bits(j)
	a.setRaw(i, uint64(y))
	a.setRaw(j, uint64(x))
}

// typeMatch reports whether indexOf and includes may compare the bits of v with those of
// elements, which they may not for numbers that have none.
func (a *float16Array) typeMatch(v goja.Value) bool {
	if !goja.IsNumber(v) {
		return false
	}
	f := v.ToFloat()
	return math.IsNaN(f) || float16Decode(float16Encode(f)) == f
}

func (a *float16Array) export(offset, length int) any {
	numbers := make([]float32, length)
	for i := range numbers {
		numbers[i] = float32(a.float(offset + i))
	}
	return numbers
}

func (a *float16Array) exportType() reflect.Type { return reflect.TypeFor[[]float32]() }

// float16Bits and float16Number are float16Encode and float16Decode for scripts.
func float16Bits(r *realm, call goja.FunctionCall) goja.Value {
	return r.vm.ToValue(float16Encode(call.Argument(0).ToFloat()))
}

func float16Number(r *realm, call goja.FunctionCall) goja.Value {
	return r.vm.ToValue(float16Decode(uint16(call.Argument(0).ToInteger()))) //nolint:gosec // has 16 bits
}

// float16Encode rounds a number to the nearest of 16 bits, ties to even.
func float16Encode(v float64) uint16 {
	bits := math.Float64bits(v)
	sign := uint16(bits >> 48 & 0x8000)
	magnitude := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return 0x7e00
	case magnitude >= 65520: // halfway from the greatest number to the next power of two
		return sign | 0x7c00
	case magnitude < 0x1p-14: // subnormal
		return sign | uint16(math.RoundToEven(magnitude*0x1p24))
	}
	exponent := int(bits>>52&0x7ff) - 1023
	fraction := math.RoundToEven(math.Ldexp(magnitude, 10-exponent)) // 1024 to 2048
	return sign + uint16((exponent+15)<<10) + uint16(fraction) - 1024
}

// float16Decode returns the number that 16 bits stand for.
func float16Decode(bits uint16) float64 {
	exponent, fraction := int(bits>>10&31), float64(bits&1023)
	v := math.Ldexp(1+fraction/1024, exponent-15)
	switch {
	case exponent == 31 && fraction != 0:
		return math.NaN()
	case exponent == 31:
		v = math.Inf(1)
	case exponent == 0:
		v = fraction * 0x1p-24
	}
	if bits&0x8000 != 0 {
		return -v
	}
	return v
}
