package server_test

import (
	"net/http"
	"strings"
	"testing"

	"berth/internal/config"
	"berth/internal/server/servertest"
)

// TestOperatorListen_OnlyOperatorsReachTheirRoutes asks for each route on both addresses. A request without a
// token to an API gets 401.
func TestOperatorListen_OnlyOperatorsReachTheirRoutes(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, config.API, "BERTH_OPERATOR_LISTEN=127.0.0.1:0")
	if a.URL() == a.OperatorURL() {
		t.Fatalf("addresses of a process with BERTH_OPERATOR_LISTEN: got %s twice, want two addresses",
			a.URL())
	}
	for path, want := range map[string][2]int{ // on BERTH_LISTEN, and on BERTH_OPERATOR_LISTEN
		"/healthz":                            {200, 200},
		"/readyz":                             {200, 200},
		"/metrics":                            {404, 200},
		"/operator/v1/notes":                  {404, 401},
		"/console/":                           {404, 401},
		"/console/login":                      {404, 200},
		"/debug/pprof/":                       {404, 200},
		"/debug/pprof/goroutine":              {404, 200},
		"/debug/pprof/cmdline":                {404, 200},
		"/networking/v2.0/ports":              {401, 404},
		"/placement/resource_providers":       {401, 404},
		"/reservation/v1/leases":              {401, 404},
		"/journal/v1/entries":                 {401, 404},
		"/agent/v1/ports/cmp-1":               {401, 404},
		"/nonexistent":                        {404, 404},
		"/metrics/":                           {404, 404},
		"/networking/../operator/v1/notes":    {401, 404},
		"/networking/%2e%2e/operator/v1/note": {401, 404},
	} {
		for i, url := range []string{a.URL(), a.OperatorURL()} {
			r, body := get(t, http.DefaultClient, url+path)
			if r.StatusCode != want[i] {
				t.Errorf("GET %s on address %d: got %s, want %d", path, i+1, r.Status, want[i])
			}
			if _, missing := get(t, http.DefaultClient, url+"/nonexistent"); want[i] == 404 &&
				(body != missing || r.Header.Get("Content-Type") != "application/json") {
				t.Errorf(
					"GET %s on address %d: got the body %s, want the same as for an unknown path, %s",
					path, i+1, body, missing,
				)
			}
		}
	}
}

func TestOperatorListen_WithoutItEverythingButProfilesIsOnOneAddress(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, config.API)
	for path, want := range map[string]int{
		"/metrics":               200,
		"/operator/v1/notes":     401,
		"/networking/v2.0/ports": 401,
		"/debug/pprof/":          404,
	} {
		if got := getStatus(t, a, path); got != want {
			t.Errorf("GET %s: got %d, want %d", path, got, want)
		}
	}
	if a.OperatorURL() != a.URL() {
		t.Errorf("URL for operators without BERTH_OPERATOR_LISTEN: got %s, want %s", a.OperatorURL(), a.URL())
	}
}

func TestOperatorListen_UsesTLSAndCountsRequestsOfBothAddresses(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	a := servertest.StartApp(t, config.API,
		append(newTLSFiles(t, ca, "server").settings(), "BERTH_OPERATOR_LISTEN=127.0.0.1:0")...)
	for _, url := range []string{a.URL() + "/networking/v2.0/ports", a.OperatorURL() + "/operator/v1/notes"} {
		if r, _ := get(t, ca.client(), url); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("GET %s: got %s, want 401", url, r.Status)
		}
	}
	_, text := get(t, ca.client(), a.OperatorURL()+"/metrics")
	for _, api := range []string{"networking", "operator/v1"} {
		series := `berth_http_request_duration_seconds_count{api="` + api + `",code="401",method="GET"} 1`
		if !strings.Contains(text, series) {
			t.Errorf(
				"scrape /metrics after one request to %s: the response does not contain its duration",
				api,
			)
		}
	}
}

func TestOperatorListen_OccupiedAddressNamesTheSetting(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, config.API)
	err := servertest.OpenError(t, "BERTH_OPERATOR_LISTEN="+a.Address())
	if err == nil || !strings.Contains(err.Error(), "(BERTH_OPERATOR_LISTEN) is already in use") {
		t.Errorf(
			"start with an occupied address for operators: got error %v, want one that names BERTH_OPERATOR_LISTEN",
			err,
		)
	}
}
