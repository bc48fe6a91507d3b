package child

import (
	"github.com/dop251/goja"
	wazeroapi "github.com/tetratelabs/wazero/api"
)

// wasmMemory is a linear memory, in Go's heap. The memory watch counts it as any other
// memory of the script; beyond that, all memories of a realm hold at most the limit of the
// function, so that a module sees memory.grow fail instead of being stopped.
type wasmMemory struct {
	engine *wasmEngine
	bytes  []byte
	buffer *goja.Object // the ArrayBuffer that shows bytes; nil until it is asked for

	memory wazeroapi.Memory
	extern wasmExtern
	object *goja.Object
}

// wasmBuffer is the state of the ArrayBuffer of a memory, which no script can detach.
type wasmBuffer struct{}

// Reallocate is called by wazero when the memory is made and when it grows. It returns nil
// if there is no room. The ArrayBuffer of before is detached.
func (m *wasmMemory) Reallocate(size uint64) []byte {
	before := uint64(cap(m.bytes))
	if size <= before {
		m.bytes = m.bytes[:size]
	} else {
		room := m.capacity(size)
		if room < size {
			return nil
		}
		if before > 0 && m.engine.bytes+room > m.engine.limit/2 {
			collectFast() // the memory watch must not see the copies of earlier growth beside the next
		}
		growing := &m.engine.realm.program.growing
		growing.Store(int64(before))
		grown := make([]byte, size, room)
		copy(grown, m.bytes)
		growing.Store(0)
		m.engine.bytes += room - before
		m.bytes = grown
	}
	m.detach()
	return m.bytes
}

// capacity returns how many bytes to allocate for a memory of size bytes, less than size if
// there is no room. A module that grows page by page must not copy its memory each time. While
// it is copied, the memory watch sees both copies, and stops what it sees above 1.25 times the
// limit.
func (m *wasmMemory) capacity(size uint64) uint64 {
	w, before := m.engine, uint64(cap(m.bytes))
	room := w.limit - (w.bytes - before)
	if before == 0 {
		return min(size, room)
	}
	atOnce := w.limit + w.limit/8
	room = min(room, atOnce-min(atOnce, w.bytes))
	wanted := size + size/4
	if wanted > atOnce/2 {
		wanted = room // it could not be copied again
	}
	return min(wanted, room)
}

// Free is called when the instance that made the memory is closed.
func (m *wasmMemory) Free() {}

// detach detaches the ArrayBuffer, whose views then have the length 0.
func (m *wasmMemory) detach() {
	if m.buffer != nil {
		detach(m.buffer)
		m.buffer = nil
	}
}

// current returns the ArrayBuffer of the memory, the same until the memory grows.
func (m *wasmMemory) current() goja.Value {
	if m.buffer == nil {
		r := m.engine.realm
		m.buffer = r.vm.ToValue(r.vm.NewArrayBuffer(m.bytes)).(*goja.Object)
		r.attach(m.buffer, wasmBuffer{})
	}
	return m.buffer
}

// grow adds pages and returns how many there were before, false if there is no room.
func (m *wasmMemory) grow(pages uint32) (uint32, bool) {
	before, ok := m.memory.Grow(pages)
	if ok {
		m.detach() // by 0 pages too
	}
	return before, ok
}
