package child

import (
	"bytes"
	"errors"
	"slices"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/webcrypto"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// cryptoKey is a CryptoKey.
type cryptoKey struct {
	*webcrypto.Key
	algorithm, usages goja.Value // as scripts see them; nil until they were read
}

// keyClass describes CryptoKey, whose objects only crypto.subtle makes.
func keyClass() *class[*cryptoKey] {
	return &class[*cryptoKey]{
		name: "CryptoKey",
		members: []member[*cryptoKey]{
			{name: "type", get: func(r *realm, k *cryptoKey) goja.Value { return r.vm.ToValue(k.Type) }},
			{name: "extractable", get: func(r *realm, k *cryptoKey) goja.Value { return r.vm.ToValue(k.Extractable) }},
			{name: "algorithm", get: func(r *realm, k *cryptoKey) goja.Value {
				if k.algorithm == nil {
					k.algorithm = r.keyAlgorithm(k.Algorithm)
				}
				return k.algorithm
			}},
			{name: "usages", get: func(r *realm, k *cryptoKey) goja.Value {
				if k.usages == nil {
					k.usages = r.texts(k.Usages)
				}
				return k.usages
			}},
		},
	}
}

// texts makes an array of texts.
func (r *realm) texts(list []string) goja.Value {
	values := []any{}
	for _, s := range list {
		values = append(values, s)
	}
	return r.vm.NewArray(values...)
}

// keyAlgorithm makes the member algorithm of a key, a dictionary.
func (r *realm) keyAlgorithm(a webcrypto.KeyAlgorithm) goja.Value {
	out := r.vm.NewObject()
	must(out.Set("name", a.Name))
	if a.Modulus > 0 {
		must(out.Set("modulusLength", a.Modulus))
		must(out.Set("publicExponent", r.newBytes(bytes.Clone(a.Exponent))))
	}
	if a.Hash != "" {
		hash := r.vm.NewObject()
		must(hash.Set("name", a.Hash))
		must(out.Set("hash", hash))
	}
	if a.Length > 0 {
		must(out.Set("length", a.Length))
	}
	if a.Curve != "" {
		must(out.Set("namedCurve", a.Curve))
	}
	return out
}

// subtleClass describes the class of crypto.subtle (https://w3c.github.io/webcrypto/#subtlecrypto-interface); the
// algorithms are those of the package webcrypto. Results are computed before the functions
// return, so their promises are settled, and a large input blocks the script until it is done.
func subtleClass() *class[subtleCrypto] {
	promised := func(name string, length int, compute func(*realm, goja.FunctionCall) goja.Value) member[subtleCrypto] {
		return member[subtleCrypto]{name: name, length: length, promise: true, call: func(r *realm, _ subtleCrypto, call goja.FunctionCall) goja.Value {
			return r.promised(func() *deferred {
				if len(call.Arguments) < length {
					panic(r.vm.NewTypeError("crypto.subtle.%s: %d arguments are required, not %d", name, length, len(call.Arguments)))
				}
				v := compute(r, call)
				d := r.newDeferred()
				must(d.resolve(v))
				return d
			})
		}}
	}
	return &class[subtleCrypto]{name: "SubtleCrypto", members: []member[subtleCrypto]{
		promised("digest", 2, subtleDigest),
		promised("generateKey", 3, subtleGenerate),
		promised("importKey", 5, subtleImport),
		promised("exportKey", 2, subtleExport),
		promised("sign", 3, subtleData(webcrypto.OpSign, webcrypto.Sign)),
		promised("verify", 4, subtleVerify),
		promised("encrypt", 3, subtleData(webcrypto.OpEncrypt, webcrypto.Encrypt)),
		promised("decrypt", 3, subtleData(webcrypto.OpDecrypt, webcrypto.Decrypt)),
		promised("deriveBits", 2, subtleDeriveBits),
		promised("deriveKey", 5, subtleDeriveKey),
		promised("wrapKey", 4, subtleWrap),
		promised("unwrapKey", 7, subtleUnwrap),
	}}
}

// subtleFailed throws an error of the package webcrypto as a DOMException.
func (r *realm) subtleFailed(err error) {
	if err == nil {
		return
	}
	var e *webcrypto.Error
	if !errors.As(err, &e) {
		panic(err)
	}
	panic(r.newDOMException(e.Name, e.Message))
}

// bytesOf returns the bytes of an ArrayBuffer or a view, in place; what names the value in
// the TypeError for others.
func (r *realm) bytesOf(v goja.Value, what string) []byte {
	data, ok := bufferSource(v)
	if !ok {
		panic(r.vm.NewTypeError("crypto.subtle: %s must be an ArrayBuffer or a view of one", what))
	}
	return data
}

// algorithmName reads an AlgorithmIdentifier: a name, or an object with one.
func (r *realm) algorithmName(v goja.Value) string {
	obj, ok := v.(*goja.Object)
	if !ok {
		return v.String()
	}
	name := obj.Get("name")
	if name == nil || goja.IsUndefined(name) {
		panic(r.vm.NewTypeError("crypto.subtle: the algorithm has no name"))
	}
	return name.String()
}

// algorithm reads the parameters of an operation
// (https://w3c.github.io/webcrypto/#algorithm-normalization-normalize-an-algorithm). A
// missing or malformed member is a TypeError.
func (r *realm) algorithm(op string, v goja.Value) *webcrypto.Params {
	name, members, err := webcrypto.Members(op, r.algorithmName(v))
	r.subtleFailed(err)
	p := &webcrypto.Params{Name: name}
	obj, _ := v.(*goja.Object)
	for _, m := range members {
		var value goja.Value
		if obj != nil {
			value = given(obj, m.Name)
		}
		if value != nil {
			r.setParam(p, m.Name, value)
		} else if !m.Optional {
			panic(r.vm.NewTypeError("crypto.subtle: the algorithm %s needs the member %s", name, m.Name))
		}
	}
	return p
}

// setParam reads one member of the parameters.
func (r *realm) setParam(p *webcrypto.Params, name string, v goja.Value) {
	switch name {
	case "hash":
		hash, _, err := webcrypto.Members(webcrypto.OpDigest, r.algorithmName(v))
		r.subtleFailed(err)
		p.Hash = hash
	case "namedCurve":
		p.Curve = v.String()
	case "length":
		n := r.unsigned(name, v)
		p.Length = &n
	case "tagLength":
		n := r.unsigned(name, v)
		p.TagLength = &n
	case "modulusLength":
		p.Modulus = r.unsigned(name, v)
	case "saltLength":
		p.SaltLength = r.unsigned(name, v)
	case "iterations":
		p.Iterations = r.unsigned(name, v)
	case "public":
		p.Public = receiver[*cryptoKey](r, v, "CryptoKey").Key
	default:
		into := map[string]*[]byte{
			"publicExponent": &p.Exponent, "iv": &p.IV, "additionalData": &p.Additional, "counter": &p.Counter,
			"label": &p.Label, "salt": &p.Salt, "info": &p.Info,
		}[name]
		*into = r.bytesOf(v, "the member "+name)
	}
}

// unsigned reads an unsigned long with [EnforceRange].
func (r *realm) unsigned(name string, v goja.Value) int {
	n := v.ToFloat()
	if !(n > -1 && n < 1<<32) {
		panic(r.vm.NewTypeError("crypto.subtle: %s must be a number from 0 to 4294967295", name))
	}
	return int(n)
}

// usagesOf reads a sequence of usages.
func (r *realm) usagesOf(v goja.Value) []string {
	usages := []string{}
	r.vm.ForOf(v, func(v goja.Value) bool {
		u := v.String()
		if !slices.Contains(webcrypto.Usages(), u) {
			panic(r.vm.NewTypeError("crypto.subtle: %q is not a usage of keys", u))
		}
		usages = append(usages, u)
		return true
	})
	return usages
}

// formatOf reads the format of a key.
func (r *realm) formatOf(v goja.Value) string {
	switch format := v.String(); format {
	case webcrypto.Raw, webcrypto.SPKI, webcrypto.PKCS8, webcrypto.JWKFormat:
		return format
	}
	panic(r.vm.NewTypeError("crypto.subtle: %q is not a format of keys; use raw, spki, pkcs8 or jwk", v.String()))
}

func (r *realm) keyOf(v goja.Value) *webcrypto.Key {
	return receiver[*cryptoKey](r, v, "CryptoKey").Key
}

// newKey makes a CryptoKey.
func (r *realm) newKey(k *webcrypto.Key) goja.Value {
	return keyClass().instance(r, &cryptoKey{Key: k})
}

// newBuffer makes an ArrayBuffer of what an operation returned.
func (r *realm) newBuffer(b []byte, err error) goja.Value {
	r.subtleFailed(err)
	return r.vm.ToValue(r.vm.NewArrayBuffer(b))
}

// subtleDigest is digest(algorithm, data).
func subtleDigest(r *realm, call goja.FunctionCall) goja.Value {
	p := r.algorithm(webcrypto.OpDigest, call.Argument(0))
	return r.newBuffer(webcrypto.Digest(p.Name, r.bytesOf(call.Argument(1), "the data")), nil)
}

// subtleData makes an operation (algorithm, key, data).
func subtleData(op string, compute func(*webcrypto.Params, *webcrypto.Key, []byte) ([]byte, error)) func(*realm, goja.FunctionCall) goja.Value {
	return func(r *realm, call goja.FunctionCall) goja.Value {
		k, data := r.keyOf(call.Argument(1)), r.bytesOf(call.Argument(2), "the data")
		return r.newBuffer(compute(r.algorithm(op, call.Argument(0)), k, data))
	}
}

// subtleVerify is verify(algorithm, key, signature, data).
func subtleVerify(r *realm, call goja.FunctionCall) goja.Value {
	k, signature, data := r.keyOf(call.Argument(1)), r.bytesOf(call.Argument(2), "the signature"), r.bytesOf(call.Argument(3), "the data")
	ok, err := webcrypto.Verify(r.algorithm(webcrypto.OpVerify, call.Argument(0)), k, signature, data)
	r.subtleFailed(err)
	return r.vm.ToValue(ok)
}

// subtleGenerate is generateKey(algorithm, extractable, usages): a key, or a pair.
func subtleGenerate(r *realm, call goja.FunctionCall) goja.Value {
	usages := r.usagesOf(call.Argument(2))
	key, private, err := webcrypto.Generate(r.algorithm(webcrypto.OpGenerate, call.Argument(0)), call.Argument(1).ToBoolean(), usages)
	r.subtleFailed(err)
	if private == nil {
		return r.newKey(key)
	}
	pair := r.vm.NewObject()
	must(pair.Set("publicKey", r.newKey(key)))
	must(pair.Set("privateKey", r.newKey(private)))
	return pair
}

// subtleImport is importKey(format, data, algorithm, extractable, usages).
func subtleImport(r *realm, call goja.FunctionCall) goja.Value {
	format, usages := r.formatOf(call.Argument(0)), r.usagesOf(call.Argument(4))
	p := r.algorithm(webcrypto.OpImport, call.Argument(2))
	var m webcrypto.Material
	if format == webcrypto.JWKFormat {
		obj, ok := call.Argument(1).(*goja.Object)
		if _, binary := bufferSource(call.Argument(1)); !ok || binary {
			panic(r.vm.NewTypeError("crypto.subtle: a key of the format jwk must be an object"))
		}
		m.JWK = r.readJWK(obj)
	} else {
		m.Bytes = bytes.Clone(r.bytesOf(call.Argument(1), "the key"))
	}
	k, err := webcrypto.Import(format, m, p, call.Argument(3).ToBoolean(), usages)
	r.subtleFailed(err)
	return r.newKey(k)
}

// readJWK reads a JSON Web Key.
func (r *realm) readJWK(obj *goja.Object) *webcrypto.JWK {
	j := &webcrypto.JWK{Text: map[string]string{}, Others: given(obj, "oth") != nil}
	for _, name := range webcrypto.TextMembers() {
		if v := given(obj, name); v != nil {
			j.Text[name] = v.String()
		}
	}
	if v := given(obj, "key_ops"); v != nil {
		j.KeyOps = []string{}
		r.vm.ForOf(v, func(v goja.Value) bool {
			j.KeyOps = append(j.KeyOps, v.String())
			return true
		})
	}
	if v := given(obj, "ext"); v != nil {
		ext := v.ToBoolean()
		j.Ext = &ext
	}
	return j
}

// newJWK makes the object of a JSON Web Key.
func (r *realm) newJWK(j *webcrypto.JWK) *goja.Object {
	out := r.vm.NewObject()
	define := func(name string, v goja.Value) {
		must(out.DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
	}
	define("key_ops", r.vm.ToValue(r.texts(j.KeyOps)))
	define("ext", r.vm.ToValue(*j.Ext))
	for _, name := range webcrypto.TextMembers() {
		if text, ok := j.Text[name]; ok {
			define(name, r.vm.ToValue(text))
		}
	}
	return out
}

// subtleExport is exportKey(format, key).
func subtleExport(r *realm, call goja.FunctionCall) goja.Value {
	m, err := webcrypto.Export(r.formatOf(call.Argument(0)), r.keyOf(call.Argument(1)))
	r.subtleFailed(err)
	if m.JWK != nil {
		return r.newJWK(m.JWK)
	}
	return r.newBuffer(m.Bytes, nil)
}

// subtleDeriveBits is deriveBits(algorithm, key, length).
func subtleDeriveBits(r *realm, call goja.FunctionCall) goja.Value {
	k := r.keyOf(call.Argument(1))
	var length *int
	if v := call.Argument(2); !goja.IsUndefined(v) && !goja.IsNull(v) {
		n := r.unsigned("length", v)
		length = &n
	}
	return r.newBuffer(webcrypto.DeriveBits(r.algorithm(webcrypto.OpDerive, call.Argument(0)), k, "deriveBits", length))
}

// subtleDeriveKey is deriveKey(algorithm, key, algorithm of the new key, extractable, usages).
func subtleDeriveKey(r *realm, call goja.FunctionCall) goja.Value {
	k, usages := r.keyOf(call.Argument(1)), r.usagesOf(call.Argument(4))
	p := r.algorithm(webcrypto.OpDerive, call.Argument(0))
	made := r.algorithm(webcrypto.OpImport, call.Argument(2))
	length, err := webcrypto.KeyLength(r.algorithm(webcrypto.OpKeyLength, call.Argument(2)))
	r.subtleFailed(err)
	secret, err := webcrypto.DeriveBits(p, k, "deriveKey", length)
	r.subtleFailed(err)
	key, err := webcrypto.Import(webcrypto.Raw, webcrypto.Material{Bytes: secret}, made, call.Argument(3).ToBoolean(), usages)
	r.subtleFailed(err)
	return r.newKey(key)
}

// subtleWrap is wrapKey(format, key, wrapping key, algorithm).
func subtleWrap(r *realm, call goja.FunctionCall) goja.Value {
	format, key, with := r.formatOf(call.Argument(0)), r.keyOf(call.Argument(1)), r.keyOf(call.Argument(2))
	p := r.algorithm(webcrypto.OpWrap, call.Argument(3))
	m, err := webcrypto.Export(format, key)
	r.subtleFailed(err)
	if m.JWK != nil {
		text, ok, err := r.encodeJSON(r.newJWK(m.JWK), wire.MaxCallBlob)
		r.thrownJSON("crypto.subtle.wrapKey", ok, err)
		m.Bytes = text
	}
	return r.newBuffer(webcrypto.Wrap(p, with, m.Bytes))
}

// subtleUnwrap is unwrapKey(format, wrapped key, unwrapping key, its algorithm, the wrapped
// key's, extractable, usages).
func subtleUnwrap(r *realm, call goja.FunctionCall) goja.Value {
	format, data, with := r.formatOf(call.Argument(0)), r.bytesOf(call.Argument(1), "the wrapped key"), r.keyOf(call.Argument(2))
	p, made := r.algorithm(webcrypto.OpUnwrap, call.Argument(3)), r.algorithm(webcrypto.OpImport, call.Argument(4))
	usages := r.usagesOf(call.Argument(6))
	text, err := webcrypto.Unwrap(p, with, data)
	r.subtleFailed(err)
	m := webcrypto.Material{Bytes: text}
	if format == webcrypto.JWKFormat {
		v, err := r.parseJSON(text)
		obj, ok := v.(*goja.Object)
		if err != nil || !ok {
			panic(r.newDOMException("DataError", "the wrapped key is not a JSON Web Key"))
		}
		// The members must not be read through what a script put into Object.prototype: it
		// would see a key that it may not extract.
		must(obj.SetPrototype(nil))
		m.JWK = r.readJWK(obj)
	}
	k, err := webcrypto.Import(format, m, made, call.Argument(5).ToBoolean(), usages)
	r.subtleFailed(err)
	return r.newKey(k)
}
