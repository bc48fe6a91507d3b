package jobstore

import (
	"errors"

	"github.com/codesous/sous/api"
)

func codedOf(err error) *api.Error {
	var coded *api.Error
	if errors.As(err, &coded) {
		return coded
	}
	return nil
}

// MessageOf is what callers may read of err.
func MessageOf(err error) string {
	if coded := codedOf(err); coded != nil {
		return coded.Message
	}
	return err.Error()
}

func FieldsOf(err error) []api.FieldError {
	if coded := codedOf(err); coded != nil {
		return coded.Fields
	}
	return nil
}
