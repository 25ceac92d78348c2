package osapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"berth/internal/api/osapi"
	"berth/internal/identity"
)

func TestRequest_InvalidTextIsRefusedBeforeTheHandler(t *testing.T) {
	t.Parallel()
	api := &osapi.API{
		Prefix:   "/a",
		Identity: identity.Noauth{},
		Routes: []osapi.Route{
			{
				Method: "GET",
				Path:   "/{name}",
				Handle: func(*http.Request) (int, any, error) { return 200, nil, nil },
			},
		},
		Fail: func(w http.ResponseWriter, _ *http.Request, e *osapi.Error) {
			osapi.WriteJSON(w, e.Status, map[string]string{"message": e.Message})
		},
	}
	for target, want := range map[string]int{
		"/a/ok?q=%E2%98%83":                      200,
		"/a/%E2%98%83":                           200,
		"/a/%00":                                 404,
		"/a/%ff":                                 404,
		"/a/ok?q=" + strings.Repeat(",", 999):    200,
		"/a/ok?q=" + strings.Repeat(",", 1000):   400,
		"/a/ok?q=" + strings.Repeat("&q=", 999):  200,
		"/a/ok?q=" + strings.Repeat("&q=", 1000): 400,
		"/a/ok?q=%00":                            400,
		"/a/ok?%ff=1":                            400,
		"/a/ok?q=%zz":                            400,
	} {
		t.Run(target, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), "GET", target, nil)
			r.Header.Set("X-Auth-Token", "admin")
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("GET %s: want status %d, got %d %s", target, want, w.Code, w.Body)
			}
		})
	}
	for token, want := range map[string]int{
		"admin:\xff":                        401,
		"admin:" + strings.Repeat("p", 255): 200,
		"admin:" + strings.Repeat("p", 256): 401,
		strings.Repeat("u", 256) + ":p":     401,
	} {
		t.Run(token, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/a/ok", nil)
			r.Header.Set("X-Auth-Token", token)
			w := httptest.NewRecorder()
			if api.ServeHTTP(w, r); w.Code != want {
				t.Errorf("request with the token %.20q of %d bytes: want status %d, got %d",
					token, len(token), want, w.Code)
			}
		})
	}
}
