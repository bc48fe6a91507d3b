package examples

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/codesous/sous/cmd/sous/soustest"
)

const jwtKey = "a key of at least thirty-two bytes"

// token returns a JSON Web Token with the claims, signed with the key.
func token(key, claims string) map[string]string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256"}`)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return map[string]string{"Authorization": "Bearer " + text + "." + encode(mac.Sum(nil))}
}

func testHono(t *testing.T, server *soustest.Server) {
	url := deployPackages(t, server, "hono-api")
	server.Sous(t, "secret", "set", "JWT_KEY", "--value-file", file(t, jwtKey))
	claims := func(sub string, expires time.Duration) string {
		return fmt.Sprintf(`{"sub":%q,"aud":"notes","exp":%d}`, sub, time.Now().Add(expires).Unix())
	}
	ada, bob := token(jwtKey, claims("ada", time.Hour)), token(jwtKey, claims("bob", time.Hour))

	call{"GET", "/health", nil, "", 200, `{"status":"ok"}`}.do(t, url)
	call{"GET", "/other", nil, "", 404, `{"error":"there is no such page"}`}.do(t, url)
	for _, c := range []struct {
		header map[string]string
		want   string
	}{
		{nil, `{"error":"send a bearer token"}`},
		{map[string]string{"Authorization": "Basic YTpi"}, `{"error":"send a bearer token"}`},
		{map[string]string{"Authorization": "Bearer abc"}, `{"error":"the token is not valid"}`},
		{token("another key of at least thirty-two bytes", claims("ada", time.Hour)), `{"error":"the token is not valid"}`},
		{token(jwtKey, `{"sub":"ada","aud":"notes"}`), `{"error":"the token is not valid"}`},
		{token(jwtKey, claims("ada", -time.Hour)), `{"error":"the token has expired"}`},
	} {
		call{"GET", "/notes", c.header, "", 401, c.want}.do(t, url)
	}
	call{"POST", "/notes", ada, "{", 400, `{"error":"the body is not JSON"}`}.do(t, url)
	call{"POST", "/notes", ada, `{"title":" ","tags":["A"]}`, 422, `{"error":"the request is not valid","fields":[` +
		`{"path":"title","message":"Too small: expected string to have >=1 characters"},` +
		`{"path":"tags.0","message":"Invalid string: must match pattern /^[a-z0-9-]+$/"}]}`}.do(t, url)
	call{"GET", "/notes?limit=0", ada, "", 422, `{"error":"the request is not valid","fields":[{"path":"limit","message":"Too small: expected number to be >=1"}]}`}.do(t, url)
	call{"GET", "/notes", ada, "", 200, `{"notes":[],"next":null}`}.do(t, url)

	id := addNote(t, url, ada)
	note := `{"id":"` + id + `","title":"Milk","text":"","tags":["shopping"]}`
	call{"GET", "/notes", ada, "", 200, `{"notes":[` + note + `],"next":null}`}.do(t, url)
	call{"GET", "/notes/" + id, ada, "", 200, note}.do(t, url)
	const missing = `{"error":"there is no such note"}`
	call{"GET", "/notes", bob, "", 200, `{"notes":[],"next":null}`}.do(t, url)
	call{"GET", "/notes/" + id, bob, "", 404, missing}.do(t, url)
	call{"DELETE", "/notes/" + id, bob, "", 404, missing}.do(t, url)
	call{"DELETE", "/notes/" + id, ada, "", 204, ""}.do(t, url)
	call{"GET", "/notes/" + id, ada, "", 404, missing}.do(t, url)
}

// addNote creates a note and returns its id.
func addNote(t *testing.T, url string, header map[string]string) string {
	t.Helper()
	res := call{method: "POST", path: "/notes", header: header, body: `{"title":" Milk ","tags":["shopping"]}`}.send(t, url)
	defer func() { _ = res.Body.Close() }()
	var note struct{ ID, Title string }
	if err := json.NewDecoder(res.Body).Decode(&note); err != nil || res.StatusCode != http.StatusCreated || note.Title != "Milk" || len(note.ID) != 36 {
		t.Fatalf("POST /notes: got status %d and %+v (decode: %v), want status 201, an id and the title Milk", res.StatusCode, note, err)
	}
	return note.ID
}
