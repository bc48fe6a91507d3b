package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

// The headers of a delivery, as Standard Webhooks names them. A delivery with the id
// 1760000001000-0.0 at 1760000002 has
//
//	webhook-id: 1760000001000-0.0
//	webhook-timestamp: 1760000002
//	webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

const (
	secretPrefix = "whsec_"
	secretBytes  = 32
)

// NewSecret returns a new secret: whsec_ and the base64 of 32 random bytes.
func NewSecret() string {
	key := make([]byte, secretBytes)
	_, _ = rand.Read(key) // it never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// Sign returns the value of HeaderSignature: a signature by each of the secrets, separated by
// blanks. seconds is the time of the attempt since 1970. Error: CodeSecretUnreadable for a text that
// is not a secret.
func Sign(secrets []string, id string, seconds int64, body []byte) (string, error) {
	var out []string
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
		if err != nil {
			return "", api.Errorf(api.CodeSecretUnreadable, "the secret of a webhook is damaged")
		}
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(id + "." + strconv.FormatInt(seconds, 10) + ".")) // a hash never fails to write
		_, _ = mac.Write(body)
		out = append(out, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(out, " "), nil
}
