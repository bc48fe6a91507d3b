package functions

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// TestEventsOfActivitiesHaveTheirTypes compares the declaration of ActivityEvent with the fields
// that the platform sends.
func TestEventsOfActivitiesHaveTheirTypes(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("template/types.d.ts")
	if err != nil {
		t.Fatalf("ReadFile: %v", err)
	}
	_, declared, found := strings.Cut(string(raw), "interface ActivityEvent {")
	declared, _, ended := strings.Cut(declared, "\n}\n")
	if !found || !ended {
		t.Fatal("types.d.ts has no interface ActivityEvent, want one")
	}
	fields := reflect.TypeFor[api.CadenceSource]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		if !strings.Contains(declared, " "+name+": ") {
			t.Errorf("ActivityEvent declares no %s, want each field of the event:\n%s", name, declared)
		}
	}
}

// TestLimitsOfTypesAreThoseOfThePlatform compares the limits that the declarations name with the
// constants that are enforced.
func TestLimitsOfTypesAreThoseOfThePlatform(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("template/types.d.ts")
	if err != nil {
		t.Fatalf("ReadFile: %v", err)
	}
	kib := func(n int64) string { return fmt.Sprintf("%d KiB", n>>10) }
	mib := func(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
	for _, claim := range []string{
		fmt.Sprintf("calls nest at most %d deep", api.MaxInvokeDepth),
		fmt.Sprintf("a key of 1 to %d bytes", wire.MaxKVKeyBytes),
		"Stores JSON of at most " + kib(wire.MaxKVValueBytes) + ", without an end",
		fmt.Sprintf("Writes up to %d documents", api.MaxDocumentBulkItems),
		fmt.Sprintf("1 to %d characters, no slash", api.MaxDocumentKeyCharacters),
		"/** JSON of at most " + kib(api.MaxDocumentValueBytes),
		"An object of at most " + kib(api.MaxDocumentMetadataBytes),
		fmt.Sprintf("/** %d to %s (30 days)", api.MinDocumentTTLSeconds, api.GroupDigits(api.MaxDocumentTTLSeconds)),
		fmt.Sprintf("1 to %d; the default is %d", api.MaxDocumentPage, api.DefaultDocumentPage),
		"@param payload any JSON of at most " + mib(api.MaxJobPayloadBytes),
		fmt.Sprintf("a day by default, at most %d days", int64(api.MaxUniqueTTLMS)/(24*60*60*1000)),
		fmt.Sprintf("The default is %d, the maximum %s", api.DefaultMaxAttempts, api.GroupDigits(api.MaxMaxAttempts)),
		"Stores JSON of at most " + kib(api.MaxCheckpointBytes) + " for the next attempt",
		"Records an activity's progress: JSON of at most " + kib(api.MaxHeartbeatBytes),
		"Its result is JSON of at most " + mib(api.MaxResultBytes),
		"after the delay, at most " + api.GroupDigits(api.MaxMessageRetryMS/1000),
		"The reason, at most " + api.GroupDigits(api.MaxRetryReasonBytes) + " bytes",
	} {
		if !strings.Contains(string(raw), claim) {
			t.Errorf("types.d.ts lacks %q, want it, because the platform enforces it", claim)
		}
	}
}
