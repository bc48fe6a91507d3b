// Command fakechild speaks the child's side of the protocol and breaks it on demand. The
// handler of its assignment decides how it loads (load); the event, a JSON string of a
// command and a number, decides what an activation does (handle): "spin", "exit 3", "logs
// 2000". An unknown command is answered with the event itself.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/nursery"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

type child struct {
	conn   net.Conn
	frames *wire.Reader
	out    []byte
}

// spin keeps a thread busy.
func spin() {
	for {
		time.Now()
	}
}

func main() {
	nursery.Dispatch()
	conn, err := net.FileConn(os.NewFile(3, "socket"))
	must(err)
	c := &child{conn: conn, frames: wire.NewReader(conn)}
	c.message(wire.KindHello, wire.Hello{Layers: []string{"fake"}}, nil)
	kind, payload := c.next()
	if kind != wire.KindAssign {
		os.Exit(9)
	}
	var head wire.Assign
	_, err = wire.ParseMessage(payload, &head)
	must(err)
	c.load(head)
	for {
		_, payload := c.next()
		_, event, err := wire.ParseInvoke(payload)
		must(err)
		c.handle(event)
	}
}

// load answers the assignment, or breaks it as the handler says. Any other handler is
// Ready, with a script that names it.
func (c *child) load(head wire.Assign) {
	switch head.Handler {
	case "hang":
		time.Sleep(time.Hour)
	case "spin":
		for {
			time.Now()
		}
	case "die":
		os.Exit(7)
	case "stack":
		die(2, "runtime: goroutine stack exceeds 16777216-byte limit")
	case "refuse":
		c.message(wire.KindRefused, wire.Refused{Problems: []wire.Problem{{File: "function.js", Line: 3, Column: 7, Message: "no"}}}, nil)
		os.Exit(0)
	case "refuse much":
		c.message(wire.KindRefused, wire.Refused{Problems: make([]wire.Problem, 1000)}, nil)
		os.Exit(0)
	case "refuse hugely":
		c.write(huge())
		os.Exit(0)
	case "lie":
		c.message(wire.KindReady, wire.Ready{MappedBytes: 1 << 50}, []byte("script"))
		return
	case "done":
		c.done(wire.Done{})
		return
	}
	c.message(wire.KindReady, wire.Ready{}, []byte("script of "+head.Handler))
}

// huge is a Refused whose head would be hundreds of megabytes once decoded.
func huge() []byte {
	head := `{"problems":[` + strings.Repeat("{},", 6_000_000) + `{}]}`
	frame := binary.BigEndian.AppendUint32(nil, uint32(1+4+len(head)))
	frame = append(frame, byte(wire.KindRefused))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(head)))
	return append(frame, head...)
}

// handle performs the command of one event.
func (c *child) handle(event []byte) {
	var do string
	must(json.Unmarshal(event, &do))
	if frames, ok := strings.CutPrefix(do, "stream "); ok {
		c.stream(frames)
		return
	}
	do, arg, _ := strings.Cut(do, " ")
	n := 0
	if arg != "" {
		_, err := fmt.Sscan(arg, &n)
		must(err)
	}
	switch do {
	case "spin":
		for {
			time.Now()
		}
	case "exit":
		os.Exit(n)
	case "oom":
		die(2, "runtime: out of memory: cannot allocate 1073741824-byte block")
	case "stack":
		die(2, "runtime: goroutine stack exceeds 16777216-byte limit\nfatal error: stack overflow")
	case "stderr":
		fmt.Fprint(os.Stderr, strings.Repeat("x", n))
		c.done(wire.Done{})
	case "garbage":
		c.write([]byte("this is no frame of the protocol"))
		time.Sleep(time.Hour)
	case "kind":
		c.message(wire.KindHello, wire.Hello{}, nil)
	case "notjson":
		c.done(wire.Done{Body: []byte("{")})
	case "type":
		c.fail(api.ActivationError{Type: api.ErrLost})
	case "big":
		c.done(wire.Done{Body: []byte(`"` + strings.Repeat("x", n) + `"`)})
	case "error":
		c.fail(api.ActivationError{Type: api.ErrException, Message: strings.Repeat("é", n), Stack: strings.Repeat("s", n), Code: strings.Repeat("c", n)})
	case "timeout":
		c.done(wire.Done{Outcome: wire.OutcomeTimeout})
	case "retire":
		c.done(wire.Done{Flags: wire.FlagRetire, CPUNanos: 7, MemoryPeak: 8})
		os.Exit(0)
	case "logs":
		for range n {
			c.log(bytes.Repeat([]byte("l"), 1000))
		}
		c.done(wire.Done{})
	case "emptylogs":
		c.emptyLogs(n)
	case "claim":
		c.done(wire.Done{CPUNanos: math.MaxUint64, MemoryPeak: math.MaxUint64})
	case "flood":
		for {
			fmt.Fprint(os.Stderr, strings.Repeat("x", 1<<16))
		}
	case "floodlogs":
		for {
			c.log(bytes.Repeat([]byte("l"), 64<<10))
		}
	case "floodabandons":
		c.call(1, "x", nil)
		frame, err := wire.AppendAbandon(nil, 1)
		must(err)
		frames := bytes.Repeat(frame, 4096)
		for {
			c.write(frames)
		}
	case "restless":
		c.done(wire.Done{})
		const threads = 8 // enough for half of a processor beside much other work
		runtime.GOMAXPROCS(threads)
		for range threads {
			go spin()
		}
		spin()
	case "calls":
		c.calls(n)
	case "callsoom":
		for i := range n {
			c.call(uint32(i), "x", nil)
		}
		die(2, "runtime: out of memory: cannot allocate 1073741824-byte block")
	case "bytes":
		c.call(1, "x", bytes.Repeat([]byte("b"), n))
		c.call(2, "x", bytes.Repeat([]byte("b"), n))
		c.replies(2)
	case "leave":
		c.call(1, "x", nil)
		c.done(wire.Done{})
	case "after":
		c.done(wire.Done{})
		c.log([]byte("too late"))
	case "pid":
		c.done(wire.Done{Body: fmt.Append(nil, os.Getpid())})
	default:
		c.done(wire.Done{Body: event})
	}
}

// stream sends the frames that the letters name: H a head, B one with a status that is none,
// C a chunk of the largest size, Z one without bytes, E the end of the body, D the end of the
// activation.
func (c *child) stream(frames string) {
	for _, letter := range frames {
		switch letter {
		case 'H':
			c.message(wire.KindStream, wire.StreamHead{Status: 200}, nil)
		case 'B':
			c.message(wire.KindStream, wire.StreamHead{Status: 99}, nil)
		case 'C':
			frame, err := wire.AppendChunk(nil, make([]byte, wire.MaxChunk))
			must(err)
			c.write(frame)
		case 'Z':
			c.write(append(binary.BigEndian.AppendUint32(nil, 1), byte(wire.KindChunk)))
		case 'E':
			frame, err := wire.AppendSignal(nil, wire.KindStreamEnd)
			must(err)
			c.write(frame)
		case 'D':
			c.done(wire.Done{})
		}
	}
}

// calls makes n host calls named x and waits for their replies.
func (c *child) calls(n int) {
	for i := range n {
		c.call(uint32(i), "x", nil)
	}
	c.replies(n)
}

// replies waits for n replies and answers with an array of what each of them said.
func (c *child) replies(n int) {
	var said []string
	for range n {
		kind, payload := c.next()
		if kind != wire.KindHostReply {
			os.Exit(8)
		}
		r, err := wire.ParseHostReply(payload)
		must(err)
		said = append(said, fmt.Sprintf("%v %s", r.OK, r.Head))
	}
	body, err := json.Marshal(said)
	must(err)
	c.done(wire.Done{Body: body})
}

func (c *child) call(id uint32, name string, blob []byte) {
	frame, err := wire.AppendHostCall(nil, wire.HostCall{ID: id, Name: name, Head: []byte("{}"), Blob: blob})
	must(err)
	c.write(frame)
}

// emptyLogs sends n records without text in one frame: only their overhead counts.
func (c *child) emptyLogs(n int) {
	frame, at := wire.BeginLog(nil)
	for range n {
		frame = wire.AppendLogRecord(frame, wire.LogRecord{})
	}
	frame, err := wire.EndLog(frame, at)
	must(err)
	c.write(frame)
	c.done(wire.Done{})
}

func (c *child) log(text []byte) {
	frame, at := wire.BeginLog(nil)
	frame = wire.AppendLogRecord(frame, wire.LogRecord{TSMS: 1, Level: 1, Text: text})
	frame, err := wire.EndLog(frame, at)
	must(err)
	c.write(frame)
}

func (c *child) fail(e api.ActivationError) {
	body, err := json.Marshal(e)
	must(err)
	c.done(wire.Done{Outcome: wire.OutcomeError, Body: body})
}

// done ends the activation; a Done without a body is undefined.
func (c *child) done(d wire.Done) {
	if d.Body == nil && d.Outcome == wire.OutcomeValue {
		d.Outcome = wire.OutcomeUndefined
	}
	frame, err := wire.AppendDone(nil, d)
	must(err)
	c.write(frame)
}

func (c *child) message(kind wire.Kind, head any, blob []byte) {
	frame, err := wire.AppendMessage(nil, kind, head, blob)
	must(err)
	c.write(frame)
}

func (c *child) write(b []byte) {
	_, err := c.conn.Write(b)
	must(err)
}

// next reads a frame; the parent's end is this process's.
func (c *child) next() (wire.Kind, []byte) {
	kind, payload, err := c.frames.Next()
	if err != nil {
		os.Exit(0)
	}
	return kind, payload
}

func must(err error) {
	if err != nil {
		die(1, err.Error())
	}
}

// die ends the process with a text on stderr, as Go's runtime does when it dies.
func die(status int, text string) {
	fmt.Fprintln(os.Stderr, text)
	os.Exit(status)
}
