package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestClient_RedirectIsAnError(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.RedirectHandler("/login", http.StatusFound))
	t.Cleanup(server.Close)

	err := NewClient(server.URL, "").Do(t.Context(), "GET", "/", nil, nil)

	if err == nil || !strings.Contains(err.Error(), "302") {
		t.Error(err)
	}
}
