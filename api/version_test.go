package api_test

import (
	"slices"
	"testing"

	"github.com/codesous/sous/api"
)

func TestVersionHandles(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		handlers []string
		refused  []string // of the triggers
	}{
		{"not verified", nil, nil},
		{"a function", []string{api.HandlerFunction}, nil},
		{"a web application", []string{api.HandlerFetch}, []string{api.TriggerQueue, api.TriggerSchedule}},
		{"a worker", []string{api.HandlerScheduled, api.HandlerQueue}, []string{api.TriggerAPI, api.TriggerCadence, api.TriggerHTTP}},
	} {
		v := api.Version{Version: 3, Handlers: tc.handlers}
		var refused []string
		for _, trigger := range []string{api.TriggerAPI, api.TriggerCadence, api.TriggerHTTP, api.TriggerQueue, api.TriggerSchedule} {
			if err := v.Handles(trigger); api.ErrorCode(err) == api.CodeInvalid {
				refused = append(refused, trigger)
			} else if err != nil {
				t.Errorf("Handles(%q) of %s: got error %v, want none or code %s", trigger, tc.name, err, api.CodeInvalid)
			}
		}
		if !slices.Equal(refused, tc.refused) {
			t.Errorf("%s: got the triggers %q refused, want %q", tc.name, refused, tc.refused)
		}
	}
}
