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
