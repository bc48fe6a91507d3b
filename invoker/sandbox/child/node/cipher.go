package node

import (
	"crypto/aes"
	"crypto/cipher"
	"strings"

	"github.com/dop251/goja"
	"golang.org/x/crypto/chacha20poly1305"
)

// symmetric is one encryption or decryption.
type symmetric struct {
	mode    string
	decrypt bool
	padding bool
	block   cipher.Block
	chain   cipher.BlockMode // of cbc
	stream  cipher.Stream    // of ctr
	sealer  cipher.AEAD
	iv      []byte
	aad     []byte
	tag     []byte
	tagSize int
	left    []byte // input that waits: of a block, or all of an authenticated message
}

// aesCipher returns the size of the key and the mode of a cipher's name, 0 if it is not
// known.
func aesCipher(name string) (keySize int, mode string) {
	name = strings.ToLower(name)
	switch name {
	case "chacha20-poly1305":
		return chacha20poly1305.KeySize, "chacha"
	case "id-aes128-gcm", "id-aes192-gcm", "id-aes256-gcm":
		name = "aes-" + name[6:]
	case "aes128", "aes192", "aes256":
		name = "aes-" + name[3:] + "-cbc"
	}
	bits, mode, _ := strings.Cut(strings.TrimPrefix(name, "aes-"), "-")
	switch mode {
	case "cbc", "ctr", "gcm", "ecb":
	default:
		return 0, ""
	}
	return map[string]int{"128": 16, "192": 24, "256": 32}[bits], mode
}

func cipherNatives() map[string]native {
	return map[string]native{
		// cipherInfo is (name): [size of the key, mode], undefined if it is not known.
		"cipherInfo": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			size, mode := aesCipher(text(call, 0))
			if size == 0 {
				return goja.Undefined()
			}
			return vm.NewArray(size, mode)
		},
		"cipher":       newSymmetric,
		"cipherUpdate": cipherUpdate,
		"cipherFinal":  cipherFinal,
		"cipherTag": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			return buffer(vm, append([]byte(nil), kept[*symmetric](vm, call.Argument(0)).tag...))
		},
		"cipherSetTag": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			kept[*symmetric](vm, call.Argument(0)).tag = append([]byte(nil), bytesOf(vm, call.Argument(1))...)
			return goja.Undefined()
		},
		"cipherAAD": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			c := kept[*symmetric](vm, call.Argument(0))
			c.aad = append(c.aad, bytesOf(vm, call.Argument(1))...)
			return goja.Undefined()
		},
		"cipherPadding": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			kept[*symmetric](vm, call.Argument(0)).padding = call.Argument(1).ToBoolean()
			return goja.Undefined()
		},
	}
}

// newSymmetric is (name, key, iv, decrypt, size of the tag).
func newSymmetric(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	size, mode := aesCipher(text(call, 0))
	key := bytesOf(vm, call.Argument(1))
	if len(key) != size {
		panic(failure(vm, "RangeError", "ERR_CRYPTO_INVALID_KEYLEN", "Invalid key length"))
	}
	c := &symmetric{mode: mode, decrypt: call.Argument(3).ToBoolean(), padding: true, tagSize: integer(call, 4)}
	if given(call, 2) {
		c.iv = append(c.iv, bytesOf(vm, call.Argument(2))...)
	}
	var err error
	if mode == "chacha" {
		c.sealer, err = chacha20poly1305.New(key)
		if err == nil && len(c.iv) != chacha20poly1305.NonceSize {
			err = aes.KeySizeError(len(c.iv))
		}
	} else {
		c.block, err = aes.NewCipher(key)
	}
	if err == nil {
		err = c.begin()
	}
	if err != nil {
		panic(failure(vm, "TypeError", "ERR_CRYPTO_INVALID_IV", "Invalid initialization vector"))
	}
	return keep(vm, c)
}

func (c *symmetric) begin() (err error) {
	switch c.mode {
	case "gcm":
		switch {
		case len(c.iv) == 0:
			return aes.KeySizeError(0)
		case len(c.iv) != 12:
			c.sealer, err = cipher.NewGCMWithNonceSize(c.block, len(c.iv))
		case c.tagSize >= 12:
			c.sealer, err = cipher.NewGCMWithTagSize(c.block, c.tagSize)
		default:
			c.sealer, err = cipher.NewGCM(c.block)
		}
		return err
	case "cbc", "ctr":
		if len(c.iv) != aes.BlockSize {
			return aes.KeySizeError(len(c.iv))
		}
	}
	switch {
	case c.mode == "ctr":
		c.stream = cipher.NewCTR(c.block, c.iv)
	case c.mode == "cbc" && c.decrypt:
		c.chain = cipher.NewCBCDecrypter(c.block, c.iv)
	case c.mode == "cbc":
		c.chain = cipher.NewCBCEncrypter(c.block, c.iv)
	}
	return nil
}

// blocks encrypts or decrypts whole blocks in place.
func (c *symmetric) blocks(b []byte) {
	if c.chain != nil {
		c.chain.CryptBlocks(b, b)
		return
	}
	for ; len(b) > 0; b = b[aes.BlockSize:] {
		if c.decrypt {
			c.block.Decrypt(b, b)
		} else {
			c.block.Encrypt(b, b)
		}
	}
}

// cipherUpdate is (cipher, view). An authenticated message is put out as a whole by final:
// text of a message that is not genuine is not seen.
func cipherUpdate(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	c, in := kept[*symmetric](vm, call.Argument(0)), bytesOf(vm, call.Argument(1))
	if c.stream != nil {
		out := make([]byte, len(in))
		c.stream.XORKeyStream(out, in)
		return buffer(vm, out)
	}
	c.left = append(c.left, in...)
	if c.sealer != nil {
		return buffer(vm, nil)
	}
	n := len(c.left) &^ (aes.BlockSize - 1)
	if c.decrypt && c.padding && n > 0 && n == len(c.left) {
		n -= aes.BlockSize // it may be the last one, with the padding
	}
	out := append([]byte(nil), c.left[:n]...)
	c.left = append([]byte(nil), c.left[n:]...)
	c.blocks(out)
	return buffer(vm, out)
}

func cipherFinal(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	c := kept[*symmetric](vm, call.Argument(0))
	switch {
	case c.stream != nil:
		return buffer(vm, nil)
	case c.sealer != nil && c.decrypt:
		if c.tagSize > 0 && len(c.tag) != c.tagSize && c.tagSize != 16 {
			panic(failure(vm, "Error", "", "Unsupported state or unable to authenticate data"))
		}
		out, err := c.sealer.Open(nil, c.iv, append(c.left, c.tag...), c.aad)
		if err != nil {
			panic(failure(vm, "Error", "", "Unsupported state or unable to authenticate data"))
		}
		return buffer(vm, out)
	case c.sealer != nil:
		out := c.sealer.Seal(nil, c.iv, c.left, c.aad)
		at := len(out) - c.sealer.Overhead()
		out, c.tag = out[:at:at], out[at:]
		return buffer(vm, out)
	case c.decrypt:
		return buffer(vm, c.unpadded(vm))
	}
	if c.padding {
		n := aes.BlockSize - len(c.left)%aes.BlockSize
		for range n {
			c.left = append(c.left, byte(n))
		}
	}
	if len(c.left)%aes.BlockSize != 0 {
		panic(failure(vm, "Error", "ERR_OSSL_WRONG_FINAL_BLOCK_LENGTH", "wrong final block length"))
	}
	c.blocks(c.left)
	return buffer(vm, c.left)
}

func (c *symmetric) unpadded(vm *goja.Runtime) []byte {
	if len(c.left)%aes.BlockSize != 0 || c.padding && len(c.left) == 0 {
		panic(failure(vm, "Error", "ERR_OSSL_WRONG_FINAL_BLOCK_LENGTH", "wrong final block length"))
	}
	c.blocks(c.left)
	if !c.padding {
		return c.left
	}
	n := int(c.left[len(c.left)-1])
	if n < 1 || n > aes.BlockSize {
		panic(failure(vm, "Error", "ERR_OSSL_BAD_DECRYPT", "bad decrypt"))
	}
	for _, b := range c.left[len(c.left)-n:] {
		if int(b) != n {
			panic(failure(vm, "Error", "ERR_OSSL_BAD_DECRYPT", "bad decrypt"))
		}
	}
	return c.left[:len(c.left)-n]
}
