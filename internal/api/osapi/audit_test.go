package osapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"berth/internal/store/auditstore"
)

// A client with IPv6 can send each request from another address of its network.
func TestAudit_DenialsOfAnIPv6NetworkCountTogether(t *testing.T) {
	t.Parallel()
	api := &API{Audit: auditstore.New(nil)}
	deny := func(peer string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = peer
		api.auditDenial(r, &Error{Status: http.StatusForbidden})
	}
	for i := range 600 {
		deny(fmt.Sprintf("[2001:db8:9::%x]:4711", 1+i))
	}
	if n := api.Audit.OmittedDenials(); n != 100 {
		t.Errorf("refused requests of 600 addresses of one network that are not recorded: got %d, want 100", n)
	}
	deny("[2001:db8:a::1]:4711")
	if n := api.Audit.OmittedDenials(); n != 100 {
		t.Errorf("refused requests that are not recorded after one of another network: got %d, want still 100", n)
	}
}
