package hostile

import (
	"net/http"
	"slices"
	"testing"

	"berth/internal/api/osapi"
)

// A page of another site can make a browser send a body only with the media type of a form, of plain text, or
// without one.
func TestMediaType_BodyOfBerthsOwnAPIsIsJSON(t *testing.T) {
	t.Parallel()
	h := newHostileClient(t)
	routes := 0
	forEachRoute(h, func(api *osapi.API, r osapi.Route) {
		body := validBodies[r.Method+" "+api.Prefix+r.Path]
		if body == "" || !slices.Contains([]string{"/agent/v1", "/journal/v1", "/operator/v1"}, api.Prefix) {
			return
		}
		routes++
		a := attack{method: r.Method, path: h.concretePath(api.Prefix + r.Path), body: h.fill(body)}
		for _, media := range []string{
			"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
			"text/plain; application/json", "application/jsonp", "application/json, text/plain", "json", ";",
		} {
			a.header = http.Header{"Content-Type": {media}}
			if media == "" {
				a.header["Content-Type"] = nil
			}
			if got := h.attack(a); got != http.StatusUnsupportedMediaType {
				t.Errorf("%s %s with the Content-Type %q: got status %d, want 415", r.Method, r.Path, media, got)
			}
		}
		for _, media := range []string{"application/json", "Application/JSON; charset=utf-8"} {
			a.header = http.Header{"Content-Type": {media}}
			if got := h.attack(a); got == http.StatusUnsupportedMediaType {
				t.Errorf("%s %s with the Content-Type %q: got status 415", r.Method, r.Path, media)
			}
		}
	})
	if routes < 15 {
		t.Errorf("found %d routes with a body, want at least 15", routes)
	}
}
