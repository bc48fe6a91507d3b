package api

import (
	"strings"

	"github.com/google/uuid"
)

// NewJobID returns a new job id, a UUIDv7. Ids are ordered by time, strictly within a process.
func NewJobID() string { return uuid.Must(uuid.NewV7()).String() }

// DerivedJobID returns the id of a job that a cause creates at most once: the same
// cause has the same id, so that an interrupted creation can be repeated. It is the UUIDv5
// of the parts of the cause, joined by line breaks, which none of them contains.
func DerivedJobID(cause ...string) string {
	return uuid.NewSHA1(jobSpace, []byte(strings.Join(cause, "\n"))).String()
}

// IsDerivedJobID reports whether an id may be made again once its job was deleted:
// all but those of NewJobID.
func IsDerivedJobID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err != nil || parsed.Version() != newJobIDVersion
}

// jobSpace is the UUIDv5 namespace of DerivedJobID's ids. It must not change: a repeat would
// create its job a second time.
var jobSpace = uuid.MustParse("6f1f0ad2-2c65-4b52-9d55-8d6f3a1c0b7e")

// newJobIDVersion is the UUID version of NewJobID's ids.
const newJobIDVersion = 7

// ValidateJobID returns CodeValidationName unless s is a UUID in canonical lower case.
func ValidateJobID(s string) error {
	if id, err := uuid.Parse(s); err != nil || id.String() != s {
		return nameError("job_id", s, "must be a UUID in lower case")
	}
	return nil
}
