package child

import (
	"hash/maphash"

	"github.com/dop251/goja"
)

// maxWordBytes bounds the strings that words keeps.
const maxWordBytes = 64

// words keeps short strings of the JSON texts that a program was given: the names and
// many values of one event are those of the next. A string of goja belongs to no
// runtime, so the realms of a program share them. A slot holds the last word that
// fell on it. The zero value is ready for use.
//
// 256 slots of at most 64 bytes of text bound its memory. It is used by the goroutine that
// runs scripts only.
type words struct {
	seed  maphash.Seed
	ready bool
	slots [256]word
}

// word is a string as Go and as scripts have it.
type word struct {
	text  string
	value goja.Value
}

// find returns text, which is valid UTF-8, as a word. A text over maxWordBytes is not kept.
func (w *words) find(vm *goja.Runtime, text []byte) word {
	if len(text) > maxWordBytes {
		return newWord(vm, text)
	}
	if !w.ready {
		w.seed, w.ready = maphash.MakeSeed(), true
	}
	slot := &w.slots[maphash.Bytes(w.seed, text)%uint64(len(w.slots))]
	if slot.value == nil || slot.text != string(text) {
		*slot = newWord(vm, text)
	}
	return *slot
}

func newWord(vm *goja.Runtime, text []byte) word {
	s := string(text)
	return word{s, vm.ToValue(s)}
}
