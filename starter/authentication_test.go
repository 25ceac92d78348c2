package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"berth/internal/store/storetest"
	"berth/starter/cli"
)

func TestAuthentication_OperatorShowsAndChangesTheModeOfTheDatabase(t *testing.T) {
	t.Parallel()
	h := harness{environ: []string{"BERTH_DATA=" + t.TempDir(), "BERTH_DATABASE_URL=" + storetest.URL(t)}}

	h.expect(t, 0, "the database has no value of BERTH_AUTH yet", "authentication", "show")
	h.expect(t, 2, `"none" is none of noauth, keystone`, "authentication", "set", "none")
	h.expect(t, 0, "the database expects BERTH_AUTH=noauth; restart all processes",
		"authentication", "set", "noauth")
	h.expect(t, 0, "the database expects BERTH_AUTH=keystone, before noauth; restart all processes",
		"authentication", "set", "keystone")
	h.expect(t, 0, `"mode": "keystone"`, "authentication", "show", "-o", "json")
}

func TestAuthentication_MigrationBindsTheDatabase(t *testing.T) {
	t.Parallel()
	h := harness{
		environ: []string{
			"BERTH_DATA=" + t.TempDir(),
			"BERTH_DATABASE_URL=" + storetest.URL(t),
			"BERTH_AUTH=noauth",
		},
	}

	h.expect(t, 0, "00001_schema.sql", "migrate", "--status")
	h.expect(t, 0, "no value of BERTH_AUTH yet", "authentication", "show")
	h.expect(t, 0, "the schema is up to date", "migrate")
	h.expect(t, 0, "noauth", "authentication", "show")
	h.expect(t, 0, "", "authentication", "set", "keystone")
	h.expect(t, cli.ExitConflict, "`starter authentication set noauth`", "migrate")
}

func TestDoctor_ComparesAuthentication(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ         []string
		database        string
		challenge, want string
	}{
		"nothing known":        {nil, "", "", "-     authentication     not checked"},
		"all the same":         {[]string{"BERTH_AUTH=noauth"}, "noauth", "none", "ok    authentication     BERTH_AUTH noauth, the API noauth, the database noauth"},
		"another database":     {[]string{"BERTH_AUTH=noauth"}, "keystone", "", "FAIL  authentication     processes with different authentication: BERTH_AUTH noauth, the database keystone"},
		"API without Keystone": {nil, "keystone", "none", "FAIL  authentication     processes with different authentication: the API noauth, the database keystone"},
		"API with Keystone":    {nil, "keystone", `Keystone uri="http://keystone.example/v3"`, "ok    authentication     the API keystone, the database keystone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Auth-Token") != "" || c.challenge == "" {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				if c.challenge != "none" {
					w.Header().Set("WWW-Authenticate", c.challenge)
				}
				w.WriteHeader(http.StatusUnauthorized)
			}))
			t.Cleanup(api.Close)
			h := harness{
				environ: append(
					c.environ,
					"BERTH_DATA="+t.TempDir(),
					"BERTH_URL="+api.URL,
					"TEMPORAL_ADDRESS=127.0.0.1:1",
					"BERTH_DATABASE_URL="+storetest.URL(t),
				),
			}
			if c.database != "" {
				h.expect(t, 0, "", "authentication", "set", c.database)
			}

			_, output := h.run(t, "doctor")

			if line := lineOf(output, "authentication"); !strings.Contains(line, c.want) {
				t.Errorf("doctor: got the line\n%s\nwant it to contain %q", line, c.want)
			}
		})
	}
}
