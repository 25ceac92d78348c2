package devstack_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"berth/internal/devstack"
)

func TestOpenDaylight_IsEmptyAfterRestart(t *testing.T) {
	t.Parallel()
	o, err := devstack.StartOpenDaylight(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Kill() })
	const network, port = "11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000002"
	create := func(path, body string) {
		t.Helper()
		if status, answer := sendOpenDaylight(t, o, http.MethodPost, path, body); status != http.StatusCreated {
			t.Fatalf("POST %s: got %d %s, want 201", path, status, answer)
		}
	}
	create("/networks", `{"network": {"id": "`+network+`", "name": "blue", "tenant_id": "`+network+`"}}`)
	create(
		"/ports",
		`{"port": {"id": "`+port+`", "network_id": "`+network+`", "tenant_id": "`+network+`", "mac_address": "fa:16:3e:00:00:01"}}`,
	)
	for _, path := range []string{"/networks/" + network, "/ports/" + port} {
		if status, answer := sendOpenDaylight(t, o, http.MethodGet, path, ""); status != http.StatusOK ||
			!strings.Contains(answer, network) {
			t.Errorf("GET %s: got %d %s, want 200 with %s", path, status, answer, network)
		}
	}
	o.Stop()
	if err := o.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/networks/" + network, "/ports/" + port} {
		if status, answer := sendOpenDaylight(t, o, http.MethodGet, path, ""); status != http.StatusNotFound {
			t.Errorf("GET %s after a restart: got %d %s, want 404", path, status, answer)
		}
	}
}

func sendOpenDaylight(
	t *testing.T,
	o *devstack.OpenDaylight,
	method, path, body string,
) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, o.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}
