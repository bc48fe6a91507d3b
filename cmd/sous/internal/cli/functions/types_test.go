package functions

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
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
