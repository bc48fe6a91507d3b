package jobstore

import (
	"errors"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

func codedOf(err error) *api.Error {
	var coded *api.Error
	if errors.As(err, &coded) {
		return coded
	}
	return nil
}

// MessageOf returns the message of err that clients may see: that of the api.Error in its
// chain, or else its text.
func MessageOf(err error) string {
	if coded := codedOf(err); coded != nil {
		return coded.Message
	}
	return err.Error()
}

// FieldsOf returns the fields of the api.Error in err's chain, nil if there is none.
func FieldsOf(err error) []api.FieldError {
	if coded := codedOf(err); coded != nil {
		return coded.Fields
	}
	return nil
}

// AtIndex returns err with jobs[i] before its message and the paths of its fields.
func AtIndex(err error, i int) error {
	index := "jobs[" + strconv.Itoa(i) + "]"
	coded := api.Errorf(api.ErrorCode(err), "%s: %s", index, MessageOf(err))
	fields := FieldsOf(err)
	if len(fields) == 0 {
		fields = []api.FieldError{{Message: MessageOf(err)}}
	}
	for _, f := range fields {
		f.Path = strings.TrimSuffix(index+"."+f.Path, ".")
		coded.Fields = append(coded.Fields, f)
	}
	return coded
}
