package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
)

// Each job of a chain keeps the rest of it: what they carry is bounded together.
func TestChainsAreBounded(t *testing.T) {
	t.Parallel()
	half := json.RawMessage(`"` + strings.Repeat("x", api.MaxJobPayloadBytes/2) + `"`)
	step := api.ChainStep{NewJob: api.NewJob{Payload: half}}
	j := api.NewJob{Payload: half}
	j.Chain = &api.Chain{Steps: []api.ChainStep{step}}
	if err := j.Validate(0); err != nil {
		t.Errorf("one step: %v", err)
	}
	j.Chain.OnExit = &step
	if err := j.Validate(0); api.ErrorCode(err) != api.CodeInvalid {
		t.Errorf("two halves and their quotes: got error %v, want code %s", err, api.CodeInvalid)
	}
	j.Chain = &api.Chain{Steps: make([]api.ChainStep, api.MaxChainSteps+1)}
	if err := j.Validate(0); api.ErrorCode(err) != api.CodeInvalid {
		t.Errorf("too many steps: got error %v, want code %s", err, api.CodeInvalid)
	}
}

func TestBackoffs(t *testing.T) {
	t.Parallel()
	second := int64(1000)
	for backoff, want := range map[api.Backoff][4]time.Duration{
		api.BackoffNone:        {},
		api.BackoffFixed:       {time.Second, time.Second, time.Second, time.Second},
		api.BackoffLinear:      {time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second},
		api.BackoffExponential: {time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second},
		"":                     {time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second},
	} {
		o := api.JobOptions{Backoff: backoff, BaseDelayMS: &second, MaxDelayMS: 5000}
		for i, delay := range want {
			if got := o.Delay(i+1, 0); got != delay {
				t.Errorf("%q after attempt %d: %s, want %s", backoff, i+1, got, delay)
			}
		}
		o.Jitter = true
		if got := o.Delay(3, 0.5); got != want[2]/2 {
			t.Errorf("%q with jitter: got %s, want %s", backoff, got, want[2]/2)
		}
	}
}
