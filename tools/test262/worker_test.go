package test262

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/invoker/sandbox/child"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

const (
	// deadline ends the handler of a test; patience ends the worker that does not return.
	deadline = 10 * time.Second
	patience = 20 * time.Second
	// maxAddressSpace bounds a worker, which otherwise a test for huge arrays could fill
	// the machine with.
	maxAddressSpace = 4 << 30
)

// work runs the tests whose paths come on stdin, and writes a line for each: "ok", or why
// it failed. The parent replaces a worker that dies.
func work(root string) error {
	limit := syscall.Rlimit{Cur: maxAddressSpace, Max: maxAddressSpace}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		verdict := "ok"
		c, err := readCase(root, in.Text())
		if err == nil {
			err = c.run(root)
		}
		if err != nil {
			verdict = strings.ReplaceAll(err.Error(), "\n", " ")
			if verdict == "" {
				verdict = "failed without a message"
			}
		}
		if _, err := fmt.Println(verdict); err != nil {
			return err
		}
	}
	return in.Err()
}

// run returns nil if the test passes, or why it does not.
func (c *testCase) run(root string) error {
	files, err := c.bundle(root)
	if err != nil {
		return err
	}
	outcome, err := serve(files)
	switch {
	case c.negativePhase == "":
		return err
	case err == nil:
		return fmt.Errorf("ended without an error, want a %s", c.negativeType)
	case c.negativePhase == "runtime":
		if outcome != ran || !strings.HasPrefix(err.Error(), c.negativeType) {
			return fmt.Errorf("ended with %w, want a %s", err, c.negativeType)
		}
	case outcome != refused:
		return fmt.Errorf("was deployed and ended with %w, want a %s at deploy", err, c.negativeType)
	}
	return nil
}

// stage is how far a function came.
type stage int

const (
	refused stage = iota
	ran
)

// serve deploys a function in a child of its own and calls it once.
func serve(files map[string][]byte) (stage, error) {
	tar, err := bundle.Pack(files)
	if err != nil {
		return refused, err
	}
	ours, theirs := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- child.Serve(context.Background(), theirs, child.Options{}) }()
	defer func() {
		_ = ours.Close()
		<-ended
	}()
	frames := wire.NewReader(ours)
	if _, _, err := frames.Next(); err != nil {
		return refused, err
	}
	assign, err := wire.AppendMessage(nil, wire.KindAssign, wire.Assign{Handler: "default", MemoryMB: 512}, tar)
	if err != nil {
		return refused, err
	}
	go func() { _, _ = ours.Write(assign) }()
	kind, payload, err := frames.Next()
	if err != nil {
		return refused, err
	}
	if kind != wire.KindReady {
		var answer wire.Refused
		if _, err := wire.ParseMessage(payload, &answer); err != nil {
			return refused, err
		}
		return refused, fmt.Errorf("refused: %s", describe(answer.Problems))
	}
	invoke, err := wire.AppendInvoke(nil, &wire.InvokeHead{
		ActivationID: "0", DeadlineMS: time.Now().Add(deadline).UnixMilli(), Attempt: 1, RequestID: "0",
		Ref: []byte(`{}`), Trigger: []byte(`{}`), Principal: []byte(`{}`),
	}, []byte("null"))
	if err != nil {
		return ran, err
	}
	go func() { _, _ = ours.Write(invoke) }()
	return ran, result(frames)
}

// result waits for the end of the activation.
func result(frames *wire.Reader) error {
	for {
		kind, payload, err := frames.Next()
		if err != nil {
			return err
		}
		if kind != wire.KindDone {
			continue
		}
		done, err := wire.ParseDone(payload)
		if err != nil {
			return err
		}
		switch done.Outcome {
		case wire.OutcomeTimeout:
			return fmt.Errorf("timeout after %v", deadline)
		case wire.OutcomeError:
			var e api.ActivationError
			if err := json.Unmarshal(done.Body, &e); err != nil {
				return err
			}
			return fmt.Errorf("%s", e.Message)
		}
		return nil
	}
}

func describe(problems []wire.Problem) string {
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	}
	return strings.Join(texts, "; ")
}
