package osapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"berth/internal/identity"
)

// post sends a body to an API that reads it and then calls meanwhile.
func post(t *testing.T, body string, meanwhile func()) *httptest.ResponseRecorder {
	t.Helper()
	api := &API{
		Prefix: "/a", Identity: identity.Noauth{},
		Routes: []Route{{Method: "POST", Path: "/", Handle: func(r *http.Request) (int, any, error) {
			_, err := Body(r)
			meanwhile()
			return 204, nil, err
		}}},
		Fail: func(w http.ResponseWriter, _ *http.Request, e *Error) { WriteJSON(w, e.Status, e.Message) },
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/a", strings.NewReader(body))
	r.Header.Set("X-Auth-Token", "admin")
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	return w
}

// TestBodiesOfAllRequestsAreBounded is not parallel: the room is everybody's.
func TestBodiesOfAllRequestsAreBounded(t *testing.T) {
	free := func() int64 {
		n := int64(0)
		for step := int64(maxBodies); step > 0; step /= 2 {
			for bodies.TryAcquire(step) {
				n += step
			}
		}
		bodies.Release(n)
		return n
	}
	body := strings.Repeat("x", 100)

	w := post(t, body, func() {
		if n := free(); n != maxBodies-100 {
			t.Errorf("while a body of 100 bytes is held, %d bytes are free", n)
		}
	})
	if w.Code != 204 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := post(t, strings.Repeat("x", MaxBody+1), func() {}); w.Code != 413 {
		t.Errorf("too large: %d", w.Code)
	}

	bodies.TryAcquire(maxBodies - 99)
	w = post(t, body, func() {})
	bodies.Release(maxBodies - 99)
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "too many requests at once") {
		t.Errorf("without room: %d %v %s", w.Code, w.Header(), w.Body)
	}
	if n := free(); n != maxBodies {
		t.Errorf("after all requests %d of %d bytes are free", n, maxBodies)
	}
}

func TestJSONIsTextWithWholeCharacters(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`"\ud83d\ude00"`: true, `"\uD83D\uDE00x"`: true, `"\\ud83d"`: true, `"\\\\ud83d"`: true, `"\ufffd"`: true, "\"\ufffd\"": true, `"\n\u00e9"`: true,
		`"\ud83d"`: false, `"\ude00"`: false, `"\ud83dx"`: false, `"\ud83d\n"`: false, `"\ud83d\u0041"`: false, `"\ude00\ud83d"`: false,
		`"\ud83d\ud83d\ude00"`: false, `{"\udfff":1}`: false, `"\\\ud83d"`: false,
		"\"\xff\"": false, "{\"\xed\xa0\x80\":1}": false, "\xef\xbb\xbf{}": false,
	} {
		if err := CheckJSON([]byte(raw)); (err == nil) != want {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,null,true,"\ud83d\ude00"]}`, `{"a":1,"a":2}`, `[NaN]`, "\"\\ud800\"", "{\"\xff\":1}", strings.Repeat("[", 70), "1 2", `"\\u"`, ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if CheckJSON(raw) != nil {
			return
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatalf("%q is no JSON: %v", raw, err)
		}
		again, err := json.Marshal(v)
		if err != nil {
			return // a number beyond every float
		}
		const replacement = "\ufffd"
		if bytes.Contains(again, []byte(replacement)) && !bytes.Contains(raw, []byte(replacement)) && !bytes.Contains(bytes.ToLower(raw), []byte(`\ufffd`)) {
			t.Errorf("%q was read as %q", raw, again)
		}
		if bytes.Contains(again, []byte(`\u0000`)) && !bytes.Contains(raw, []byte(`\\u0000`)) {
			t.Errorf("%q has a NUL", raw)
		}
	})
}
