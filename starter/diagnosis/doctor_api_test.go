package diagnosis

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"berth/internal/identity/keystonetest"
	"berth/starter/cli"
)

// apiAnswers starts an API that answers each path in `bodies` with the JSON body of the path, and every other
// path with 404. The header Date of each answer contains the given time. apiAnswers returns the URL of the
// API.
func apiAnswers(t *testing.T, at time.Time, bodies map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", at.UTC().Format(http.TimeFormat))
		body, ok := bodies[r.URL.Path]
		switch {
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		case strings.Contains(body, `"not ready"`):
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestDoctor_EachDamageIsAFailureWithAdvice(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 31, 10, 0, 0, 0, time.UTC)
	const running, projections, entries, runs = `{"pause":{"paused":false}}`, "/operator/v1/projections", "/journal/v1/entries", "/journal/v1/runs"
	journal := func(entry string) map[string]string {
		return map[string]string{"/journal/v1/pause": running, entries: `{"entries":[` + entry + `]}`}
	}
	for name, c := range map[string]struct {
		check        func(context.Context, *cli.Session) (string, error)
		bodies       map[string]string
		state, found string
		advice       string
	}{
		"API ready": {checkAPI, map[string]string{"/readyz": `{"status":"ready","checks":{"database":"ok","temporal":"ok","keystone":"no answer"},"informational":["temporal","keystone"]}`}, "ok", "is ready", ""},
		"API without a writable database": {checkAPI, map[string]string{"/readyz": `{"status":"not ready","checks":{"database":"the database is not usable: it is read-only"}}`},
			"FAIL", "database: the database is not usable: it is read-only", "see the other checks"},
		"API ready without Temporal": {checkAPI, map[string]string{"/readyz": `{"status":"ready","checks":{"database":"ok","temporal":"no answer"},"informational":["temporal"]}`},
			"WARN", "temporal: no answer", ""},
		"notes delivered":  {checkNotes, map[string]string{"/readyz": `{"status":"ready","checks":{"notes":"ok"}}`}, "ok", "no note waits", ""},
		"late notes":       {checkNotes, map[string]string{"/readyz": `{"status":"ready","checks":{"notes":"3 notes wait for delivery"},"informational":["notes"]}`}, "FAIL", "3 notes wait", "Start a process with the role relay"},
		"late notes, 503":  {checkNotes, map[string]string{"/readyz": `{"status":"not ready","checks":{"notes":"3 notes wait for delivery"}}`}, "FAIL", "3 notes wait", "Start a process with the role relay"},
		"refused notes":    {checkSetAsideNotes, map[string]string{"/operator/v1/notes": `{"notes":[],"set_aside":2}`}, "FAIL", "Temporal refuses 2 notes", "`starter note list --state set-aside`"},
		"no refused note":  {checkSetAsideNotes, map[string]string{"/operator/v1/notes": `{"notes":[],"set_aside":0}`}, "ok", "Temporal refuses no note", ""},
		"empty journal":    {checkJournal, journal(``), "ok", "no entry waits", ""},
		"young entry":      {checkJournal, journal(`{"seq":7,"state":"pending","attempts":1,"created_at":"2030-01-31T09:59:50Z"}`), "ok", "waited for 10s, with 1 attempts", ""},
		"entry that waits": {checkJournal, journal(`{"seq":7,"operation":"update","object_type":"port","object_id":"p1","state":"processing","attempts":34,"last_error":"503","created_at":"2030-01-31T09:00:00Z"}`), "FAIL", "the oldest entry has waited for 1h0m0s, with 34 attempts: entry 7 (update port/p1), last error: 503", "`starter why journal/7`"},
		"failed entry":     {checkJournal, journal(`{"seq":7,"operation":"create","object_type":"port","object_id":"p1","state":"failed","last_error":"400","created_at":"2030-01-31T09:59:59Z"}`), "FAIL", "OpenDaylight has refused entry 7", "`starter journal retry 7`"},
		"paused journal":   {checkJournal, map[string]string{"/journal/v1/pause": `{"pause":{"paused":true,"actor":"ann"}}`}, "WARN", "paused by ann", ""},
		"audit without findings": {checkAudit, map[string]string{runs: `{"runs":[{"id":3,"kind":"audit","state":"done","finished_at":"2030-01-31T09:00:00Z","progress":[{"missing":0}]}]}`},
			"ok", "found 0 missing, 0 different and 0 extra", ""},
		"orphans at the controller": {checkAudit, map[string]string{runs: `{"runs":[{"id":3,"kind":"audit","state":"done","finished_at":"2030-01-31T09:00:00Z","progress":[{"extra":40},{"missing":1,"extra":6}]}]}`},
			"FAIL", "audit 3 at 2030-01-31T09:00:00Z found 1 missing, 0 different and 46 extra objects", "`starter odl repair --plan 3`"},
		"repaired orphans": {checkAudit, map[string]string{runs: `{"runs":[{"id":3,"kind":"audit","state":"done","finished_at":"2030-01-31T09:00:00Z","progress":[{"extra":1}]},
			{"id":4,"kind":"repair","plan":3,"state":"done","finished_at":"2030-01-31T09:01:00Z"}]}`}, "ok", "which were repaired", ""},
		"no audit": {checkAudit, map[string]string{runs: `{"runs":[]}`}, "-", "`starter odl audit`", ""},
		"all rows attended": {checkProjection("executions"), map[string]string{projections: `{"projections":[{"name":"executions","compared_at":"2030-01-31T09:59:00Z","rows":12}]}`},
			"ok", "equal to 12 rows, compared 1m0s ago", ""},
		"unattended rows": {checkProjection("executions"), map[string]string{projections: `{"projections":[{"name":"executions","compared_at":"2030-01-31T09:59:00Z","unattended":2,"orphans":1,"late_seconds":75,"examples":["port/p1"]}]}`},
			"FAIL", "2 rows have no execution, 1 executions have no row, due work is 1m15s late: port/p1", "`starter why OBJECT`"},
		"comparison stopped": {checkProjection("executions"), map[string]string{projections: `{"projections":[{"name":"executions","compared_at":"2030-01-31T09:00:00Z"}]}`},
			"FAIL", "the last comparison with the rows was 1h0m0s ago", "Start a process with the role relay"},
		"late work before the first comparison": {checkProjection("executions"), map[string]string{projections: `{"projections":[{"name":"executions","compared_at":null,"late_seconds":90}]}`},
			"FAIL", "due work is 1m30s late", "`starter why OBJECT`"},
		"no comparison yet": {checkProjection("executions"), map[string]string{projections: `{"projections":[{"name":"executions","compared_at":null}]}`}, "-", "not compared executions with the rows yet", ""},
		"outdated search attributes": {checkProjection("search attributes"), map[string]string{projections: `{"projections":[{"name":"search attributes","compared_at":"2030-01-31T09:59:00Z","different":360}]}`},
			"FAIL", "360 executions have outdated attributes", "relay and temporal"},
		"wrong usage": {checkProjection("usage"), map[string]string{projections: `{"projections":[{"name":"usage","compared_at":"2030-01-31T09:59:00Z","different":1,"examples":["VCPU of provider u1"]}]}`},
			"FAIL", "1 inventories had a usage that differs from their allocations: VCPU of provider u1", "berth repairs this within minutes"},
		"API without projections": {checkProjection("executions"), nil, "-", "does not answer GET /operator/v1/projections", ""},
		"completed maintenance": {checkMaintenance, map[string]string{projections: `{"maintenance":[{"part":"healing","completed_at":"2030-01-31T09:51:00Z"},{"part":"sweep","completed_at":"2030-01-31T09:59:00Z"}]}`},
			"ok", "healing, sweep completed in the last 9m0s", ""},
		"maintenance stopped": {checkMaintenance, map[string]string{projections: `{"maintenance":[{"part":"hosts","completed_at":"2030-01-31T09:00:00Z"},{"part":"healing","completed_at":"2030-01-31T09:59:00Z"},{"part":"sweep","completed_at":"2030-01-31T09:00:00Z"}]}`},
			"FAIL", "hosts was completed 1h0m0s ago, sweep was completed 1h0m0s ago", "`starter why maintenance/sweep` explains the present round"},
		"hosts cannot be read": {checkMaintenance, map[string]string{projections: `{"maintenance":[{"part":"hosts","completed_at":"2030-01-31T09:00:00Z"},{"part":"sweep","completed_at":"2030-01-31T09:59:00Z"}]}`},
			"FAIL", "hosts was completed 1h0m0s ago: berth does not notice hosts that fail", "Nova must answer GET /os-hypervisors/detail"},
		"API without maintenance": {checkMaintenance, map[string]string{projections: `{"projections":[]}`}, "-", "the API does not say when", ""},
		"no overdue lease": {checkLeases, map[string]string{"/reservation/v1/leases": `{"leases":[{"id":"l1","name":"gold","status":"PENDING","start_date":"2030-01-31T10:00:00.000000"}]}`},
			"ok", "no start or end of a lease is overdue", ""},
		"no host in quarantine": {checkHosts, map[string]string{"/reservation/v1/os-hosts": `{"hosts":[{"hypervisor_hostname":"cmp-1","berth:quarantine":null},{"hypervisor_hostname":"cmp-2"}]}`},
			"ok", "no host is in quarantine", ""},
		"host in quarantine": {checkHosts, map[string]string{"/reservation/v1/os-hosts": `{"hosts":[{"hypervisor_hostname":"cmp-1","berth:quarantine":{"lease":"l1"}},{"hypervisor_hostname":"cmp-2"}]}`},
			"WARN", "1 of 2 hosts are in quarantine, for example cmp-1", ""},
		"sealed audit log": {checkAuditLog(0), map[string]string{"/operator/v1/audit": `{"audit_records":[],"head":{"sequence":7,"hash":"00"},"waiting":0}`},
			"ok", "every record is sealed", ""},
		"audit log that no process seals": {checkAuditLog(0), map[string]string{"/operator/v1/audit": `{"audit_records":[],"head":{"sequence":7,"hash":"00"},"waiting":3}`},
			"FAIL", "3 records wait, and none was sealed", "Start a process with the role relay"},
		"nothing overdue": {checkOverdue, map[string]string{"/operator/v1/overdue": `{"overdue":[]}`}, "ok", "nothing is overdue", ""},
		"only a silent agent": {checkOverdue, map[string]string{"/operator/v1/overdue": `{"overdue":[{"kind":"agent","count":1,"worst":[{"object":"DHCP agent on net-1","reason":"it sends no heartbeat","overdue_seconds":540}]}]}`},
			"WARN", "1 of the kind agent: DHCP agent on net-1 for 9m0s (it sends no heartbeat)", ""},
		"overdue port": {checkOverdue, map[string]string{"/operator/v1/overdue": `{"overdue":[{"kind":"port","count":5000,"at_least":true,"worst":[{"object":"port/1","reason":"it waits for L2 on cmp-1","overdue_seconds":2940.2},{"object":"port/2","reason":"","overdue_seconds":60},{"object":"port/3","overdue_seconds":1}]},{"kind":"agent","count":1,"worst":[{"object":"DHCP agent on net-1","overdue_seconds":540}]}]}`},
			"FAIL", "at least 5000 of the kind port: port/1 for 49m0s (it waits for L2 on cmp-1), port/2 for 1m0s; 1 of the kind agent", "`starter why OBJECT`"},
		"clocks agree":           {checkClocks, map[string]string{"/healthz": `{}`}, "ok", "the API agree with this machine", ""},
		"unreachable Temporal":   {checkNamespace, nil, "FAIL", "cannot reach Temporal", "Is it running?"},
		"Keystone is not in use": {checkKeystone, nil, "-", "BERTH_AUTH is not keystone", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newSession(t, now, "BERTH_URL="+apiAnswers(t, now, c.bodies))

			found, err := c.check(t.Context(), s)
			row, failure := resultRow("check", found, err)

			advice, _ := row["next"].(string)
			text, _ := row["found"].(string)
			if row["state"] != c.state || !strings.Contains(text, c.found) ||
				!strings.Contains(advice, c.advice) ||
				(failure != nil) != (c.state == "FAIL") {
				t.Errorf("got %v, error %v; want the state %s, the text %q and the advice %q",
					row, failure, c.state, c.found, c.advice)
			}
		})
	}
}

func TestDoctor_NamesTheClockThatDiffers(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 31, 10, 0, 0, 0, time.UTC)
	for difference, want := range map[time.Duration]string{time.Hour: "the API by +3600 s", -time.Minute: "the API by -60 s"} {
		s, _ := newSession(t, now,
			"BERTH_URL="+apiAnswers(t, now.Add(difference), map[string]string{"/healthz": `{}`}))

		_, err := checkClocks(t.Context(), s)

		var e *cli.Error
		if !errors.As(err, &e) || !strings.Contains(e.Error(), want) || !strings.Contains(e.Next, "chrony") {
			t.Errorf("check clocks with an API that is %s ahead: got %v, want %q and advice",
				difference, err, want)
		}
	}
}

func TestDoctor_KeystoneMustAcceptTheServiceUser(t *testing.T) {
	t.Parallel()
	keystone := keystonetest.New(t)
	keystone.User("berth", "secret", "service", "service")
	keystone.User("weak", "secret", "service", "member")
	// a redirect would send the password to another server
	redirect := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, keystone.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(redirect.Close)
	for name, c := range map[string]struct{ url, user, password, state, found, advice string }{
		"accepted":       {keystone.URL + "/v3", "berth", "secret", "ok", "accepts berth's service user", ""},
		"wrong password": {keystone.URL + "/v3", "berth", "wrong", "FAIL", "rejects berth's user (401)", "Set OS_USERNAME, OS_PASSWORD"},
		"no role":        {keystone.URL + "/v3", "weak", "secret", "FAIL", "does not let berth's service user weak validate tokens", "role service"},
		"wrong path":     {keystone.URL, "berth", "secret", "FAIL", "answers 404", "Does OS_AUTH_URL end in /v3?"},
		"redirect":       {redirect.URL + "/v3", "berth", "secret", "FAIL", "answers 307", ""},
		"no server":      {"http://127.0.0.1:1/v3", "berth", "secret", "FAIL", "cannot reach Keystone", "Nothing listens at this address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newSession(
				t, time.Time{}, "BERTH_AUTH=keystone", "OS_AUTH_URL="+c.url, "OS_USERNAME="+c.user,
				"OS_PASSWORD="+c.password, "OS_PROJECT_NAME=service",
			)

			found, err := checkKeystone(t.Context(), s)
			row, _ := resultRow("Keystone", found, err)

			text, _ := row["found"].(string)
			advice, _ := row["next"].(string)
			if row["state"] != c.state || !strings.Contains(text, c.found) ||
				!strings.Contains(advice, c.advice) ||
				strings.Contains(text, "secret") {
				t.Errorf("check Keystone: got %v, want the state %s, the text %q and the advice %q",
					row, c.state, c.found, c.advice)
			}
		})
	}
}
