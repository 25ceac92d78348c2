package osapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"berth/internal/api/osapi"
	"berth/internal/identity"
)

func TestError_LongMessageIsShortened(t *testing.T) {
	t.Parallel()
	api := &osapi.API{
		Prefix:   "/a",
		Identity: identity.Noauth{},
		Routes: []osapi.Route{{Method: "POST", Path: "/", Handle: func(r *http.Request) (int, any, error) {
			return 204, nil, osapi.Decode(r, &struct{}{})
		}}},
		Fail: func(w http.ResponseWriter, _ *http.Request, e *osapi.Error) { osapi.WriteJSON(w, e.Status, e.Message) },
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/a",
		strings.NewReader(`{"`+strings.Repeat("☃", 100_000)+`":1}`))
	r.Header.Set("X-Auth-Token", "admin")
	w := httptest.NewRecorder()

	api.ServeHTTP(w, r)

	var message string
	if err := json.Unmarshal(w.Body.Bytes(), &message); err != nil || w.Code != 400 ||
		utf8.RuneCountInString(message) != 2048 ||
		!strings.HasPrefix(message, "Invalid input: unknown field \"☃") ||
		!strings.Contains(message, "☃…☃") {
		t.Errorf(
			"error with a long message: got status %d, %d characters: %.60s, decoding error %v; want 400 and 2048 characters of the message",
			w.Code, utf8.RuneCountInString(message), message, err,
		)
	}
}
