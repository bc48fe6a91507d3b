package api_test

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
)

func TestKeysAreRecognised(t *testing.T) {
	t.Parallel()
	text, id, err := api.NewKeySecret(1_700_000_000_000, rand.Reader)
	if err != nil {
		t.Fatalf("api.NewKeySecret: %v", err)
	}
	if !api.LooksLikeKey(text) {
		t.Errorf("LooksLikeKey(%q) = false, want true", text)
	}
	if at, err := api.KeyTimeMS(id); err != nil || at != 1_700_000_000_000 {
		t.Errorf("KeyTimeMS(%q) = %d and error %v, want 1700000000000 and no error", id, at, err)
	}
	if strings.TrimPrefix(id, "key_") != text[5:31] {
		t.Errorf("NewKeySecret: got id %q for %q, want the id of the key", id, text)
	}
	other, _, err := api.NewKeySecret(1_700_000_000_000, rand.Reader)
	if err != nil || other == text || api.KeyDigest(other) == api.KeyDigest(text) {
		t.Errorf("second NewKeySecret: got the same key or error %v, want another key", err)
	}
	// Strict: the last character carries four bits of the secret and no more.
	for _, bad := range []string{"", "sous_", text[1:], text + "A", text[:len(text)-1], "sous-" + text[5:], text[:31] + "-" + text[32:],
		text[:40] + "!" + text[41:], "sous_" + strings.ToLower(text[5:31]) + text[31:] + "\n", text[:len(text)-1] + "B", " " + text} {
		if bad != text && api.LooksLikeKey(bad) {
			t.Errorf("LooksLikeKey(%q) = true, want false", bad)
		}
	}
}

func TestKeysAreCutOutOfText(t *testing.T) {
	t.Parallel()
	key, _, err := api.NewKeySecret(1_700_000_000_000, rand.Reader)
	if err != nil {
		t.Fatalf("api.NewKeySecret: %v", err)
	}
	for text, want := range map[string]string{
		"":                                 "",
		"sous_":                            "sous_",
		"a sous_ and sous_sous_":           "a sous_ and sous_sous_",
		key:                                "sous_…",
		"/v1/keys/" + key + "/x":           "/v1/keys/sous_…/x",
		"sous_" + key + key:                "sous_sous_…sous_…",
		key[:len(key)-1] + " is cut short": key[:len(key)-1] + " is cut short",
	} {
		if got := api.WithoutKeys(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := api.ContainsKey(text); got != (text != want) {
			t.Errorf("ContainsKey(%q) = %v, want %v", text, got, text != want)
		}
	}
}

func TestKeysNeedEntropy(t *testing.T) {
	t.Parallel()
	if _, _, err := api.NewKeySecret(1, bytes.NewReader(make([]byte, 41))); err == nil {
		t.Error("made a key of too little")
	}
}

func TestKeyIDs(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "key_", "key_x", "drf_01ARZ3NDEKTSV4RRFFQ69G5FAV", "key_01ARZ3NDEKTSV4RRFFQ69G5FA!"} {
		if _, err := api.KeyTimeMS(bad); api.ErrorCode(err) != api.CodeValidationName {
			t.Errorf("KeyTimeMS(%q): got error %v, want CodeValidationName", bad, err)
		}
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"admin", "developer", "operator", "invoker", "viewer", "role:billing", "role:a_b-9"} {
		if err := api.ValidateRole(good); err != nil {
			t.Errorf("ValidateRole(%q): got error %v, want none", good, err)
		}
	}
	for _, bad := range []string{"", "*", "Admin", "admn", "role:", "role:A", "role:" + strings.Repeat("a", 61)} {
		if err := api.ValidateRole(bad); api.ErrorCode(err) != api.CodeInvalid {
			t.Errorf("ValidateRole(%q): got error %v, want CodeInvalid", bad, err)
		}
	}
}
