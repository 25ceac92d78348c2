package osapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"berth/internal/api/osapi"
	"berth/internal/identity"
)

func TestWhatIsNoTextIsRefusedBeforeAHandlerSeesIt(t *testing.T) {
	t.Parallel()
	api := &osapi.API{
		Prefix:   "/a",
		Identity: identity.Noauth{},
		Routes:   []osapi.Route{{Method: "GET", Path: "/{name}", Handle: func(*http.Request) (int, any, error) { return 200, nil, nil }}},
		Fail: func(w http.ResponseWriter, _ *http.Request, e *osapi.Error) {
			osapi.WriteJSON(w, e.Status, map[string]string{"message": e.Message})
		},
	}
	for target, want := range map[string]int{
		"/a/ok?q=%E2%98%83": 200, "/a/%E2%98%83": 200,
		"/a/%00": 404, "/a/%ff": 404,
		"/a/ok?q=%00": 400, "/a/ok?%ff=1": 400, "/a/ok?q=%zz": 400,
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", target, nil)
		r.Header.Set("X-Auth-Token", "admin")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: want %d, got %d %s", target, want, w.Code, w.Body)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/a/ok", nil)
	r.Header.Set("X-Auth-Token", "admin:\xff")
	w := httptest.NewRecorder()
	if api.ServeHTTP(w, r); w.Code != 401 {
		t.Errorf("a project that is no text: want 401, got %d", w.Code)
	}
}

func TestJSONWithNULIsRefused(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`{"a":"b"}`: true, `"\\u0000"`: true, `{"a":"\u0000"}`: false, `{"\u0000":1}`: false, `["\u0000"]`: false,
	} {
		if err := osapi.CheckJSON([]byte(raw)); (err == nil) != want {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
