package console_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"berth/internal/identity"
	"berth/internal/inventory"
	"berth/internal/network"
	"berth/internal/store/storetest"
)

func encode(token string) string { return base64.RawURLEncoding.EncodeToString([]byte(token)) }

func TestPages_ShowEachObject(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(identity.Noauth{})
	for name, want := range map[string][]string{
		"waiting":         {"L2 on cmp-1", "agents on cmp-9", "DHCP agents of the network", "OpenDaylight", "an administrator", "an earlier entry", "2 × port"},
		"calendar":        {"node-1", "gold on node-", `data-status="PENDING"`, "Zoom in to day", "Zoom out to 4 weeks", "Earlier"},
		"journal":         {"port web", "5 create", "failed", `<path class="edge" d="M190 `, "Lag of the newest entries", "(open)", `data-value="`},
		"conflicts":       {"node-1", "/console/providers/" + e.provider, "aggregates"},
		"projections":     {"Workflow executions in Temporal", "Search attributes in Temporal", "Objects at the controller", "in step", "not compared yet"},
		"waiting objects": {"db", "&lt;img src=x onerror=", "/console/ports/"},
		"port": {"Port web", `href="/console/consumers/` + e.web.DeviceID, "it waits for DHCP on net-1", "entry ", "create port recorded", "begins to wait for L2", "starter why port/" + e.web.ID.String(),
			`href="http://temporal.example:8233/namespaces/default/workflows/port%2F` + e.web.ID.String()},
		"trunk": {"Trunk uplink", "its parent port " + e.trunk.Port.String() + " is not bound to a host", "uplink-parent", "/console/ports/" + e.trunk.Port.String(),
			"uplink-subport", "vlan 77", "create trunk recorded", "starter why trunk/" + e.trunk.ID.String()},
		"consumer": {"Consumer " + e.web.DeviceID, "generation 1", "2 allocations from 1 resource provider.", "/console/providers/" + e.server, ">node-2<", "<td>VCPU</td><td>4</td>",
			"<dd>demo</dd>", "<dd>ann</dd>", "<dd>INSTANCE</dd>", "allocations by nova/service: consumer generation none → 1", "starter allocation show " + e.web.DeviceID},
		"lease":    {"Lease gold", "start_lease is next", "node-", "start is due: UNDONE", "workflows/lease%2F"},
		"entry":    {"Journal entry 5", "the controller refused it 3 times", "an administrator", "workflows/journal%2F5"},
		"host":     {"Host node-1", "/console/providers/" + e.provider, "gets the host", "provider generation"},
		"provider": {"Resource provider node-1", "MEMORY_MB", "65536", "starter provider show " + e.provider},
		"pause":    {"Pause the journal", `name="reason"`, "Earlier decisions"},
	} {
		t.Run(name, func(t *testing.T) {
			r, body := e.send(h, request{"GET", e.paths()[name], "", browser("admin")})
			if r.StatusCode != http.StatusOK {
				t.Fatalf("got %d %s", r.StatusCode, body)
			}
			for _, text := range want {
				if !strings.Contains(body, text) {
					t.Errorf("the page does not contain %q:\n%s", text, body)
				}
			}
			if strings.Contains(body, "<img") || strings.Contains(body, " style=") ||
				strings.Contains(body, "<script>") {
				t.Errorf("the page contains a name as HTML, or an inline style or script:\n%s", body)
			}
		})
	}
}

func TestFind_RedirectsToTheObject(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	for range 2 {
		e.createPort("twin", "cmp-1")
	}
	h := e.console(identity.Noauth{})
	for id, want := range map[string]string{
		e.web.ID.String():                      "/console/ports/" + e.web.ID.String(),
		strings.ToUpper(e.gold.ID.String()):    "/console/leases/" + e.gold.ID.String(),
		e.trunk.ID.String():                    "/console/trunks/" + e.trunk.ID.String(),
		e.provider:                             "/console/providers/" + e.provider,
		e.web.DeviceID:                         "/console/consumers/" + e.web.DeviceID,
		strings.ToUpper(e.web.DeviceID):        "/console/consumers/" + e.web.DeviceID,
		" 5 ":                                  "/console/entries/5",
		"node-1":                               fmt.Sprintf("/console/hosts/%d", e.host.ID),
		"cmp-9":                                "/console/waiting/host?host=cmp-9&name=",
		"web":                                  "/console/ports/" + e.web.ID.String(),
		"twin":                                 "/console/ports?name=twin",
		"":                                     "",
		"nothing":                              "",
		"99999":                                "",
		"00000000-0000-0000-0000-000000000000": "",
	} {
		r, _ := e.send(h, request{"GET", "/console/find?id=" + url.QueryEscape(id), "", browser("admin")})
		if got := r.Header.Get("Location"); got != want ||
			(want == "") != (r.StatusCode == http.StatusNotFound || r.StatusCode == http.StatusBadRequest) {
			t.Errorf("find %q: got %d with the Location %q, want %q", id, r.StatusCode, got, want)
		}
	}
}

func TestNamedPorts_ListsEachPortWithItsReason(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(identity.Noauth{})
	for _, host := range []string{"cmp-1", "cmp-2"} {
		p := e.createPort("twin", host)
		_, body := e.send(h, request{"GET", "/console/ports?name=twin", "", browser("admin")})
		for _, text := range []string{"Ports with the name twin", "/console/ports/" + p.ID.String(), "it waits for L2 on " + host} {
			if !strings.Contains(body, text) {
				t.Errorf("the list does not contain %q:\n%s", text, body)
			}
		}
	}
	if _, body := e.send(h, request{"GET", "/console/ports?name=none", "", browser("admin")}); !strings.Contains(body, "No port has this name.") {
		t.Errorf("the list of a name that no port has: got %s", body)
	}
}

// lateRows makes the lease with the first ID stay on the host node-1 eight minutes after its end, lets the
// second one start there in 40 minutes, and silences the agent of this host.
const lateRows = `
	set local session_replication_role = replica;
	delete from host_allocation where host_id = (select id from host where hostname = 'node-1') or reservation_id in (select id from reservation where lease_id in ('%[1]s', '%[2]s'));
	update lease set status = 'TERMINATING', start_at = now() - interval '6 hours', end_at = now() - interval '8 minutes' where id = '%[1]s';
	update lease set start_at = now() + interval '40 minutes', end_at = now() + interval '9 hours' where id = '%[2]s';
	insert into host_allocation (reservation_id, host_id, during, owner)
	select r.id, h.id, tstzrange(l.start_at, l.end_at), r.id from reservation r join lease l on l.id = r.lease_id, host h where l.id in ('%[1]s', '%[2]s') and h.hostname = 'node-1';
	update event v set at = case v.event_type when 'start_lease' then l.start_at else l.end_at end, status = case when l.status = 'PENDING' then 'UNDONE' when v.event_type = 'end_lease' then 'IN_PROGRESS' else 'DONE' end
	from lease l where l.id = v.lease_id and l.id in ('%[1]s', '%[2]s');
	update agent set heartbeat_at = now() - interval '9 minutes' where host = 'node-1';
	update block set since = now() - interval '6 minutes' where host = 'node-1';`

func TestPages_NameTheHostAndTheLeaseThatMakeOthersWait(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	_, err := e.Network.ReportState(t.Context(),
		network.AgentState{Type: network.OVSAgent, Host: "node-1", Configurations: json.RawMessage(`{}`)})
	e.check(err)
	p := e.createPort("billing", "node-1")
	from := time.Now().Add(100 * time.Hour)
	old, next := e.createLease("experiment", from, from.Add(time.Hour), 1), e.createLease("nightly", from, from.Add(time.Hour), 1)
	storetest.ExecScript(t, e.url, fmt.Sprintf(lateRows, old.ID, next.ID))
	h := e.console(identity.Noauth{})
	host := fmt.Sprintf("/console/hosts/%d", e.host.ID)
	waiting := "/console/waiting/lease?host=node-1&amp;name=experiment"
	for path, want := range map[string][]string{
		"/console/": {"agent silent for 9 minutes", `-first" href="/console/ports/`, ">billing</a>", "Leases past their end",
			waiting, "experiment to leave node-1", "8 minutes</time>", ">nightly</a>", "/console/leases/" + next.ID.String()},
		strings.ReplaceAll(waiting, "&amp;", "&"): {">nightly</a>", "(8 minutes)", host, "Host node-1"},
		host: {"Lease experiment should have left the host at ", "Lease nightly gets it next: it starts late if the host is not free at ",
			"The Open vSwitch agent is silent: its last report was at ", "1 lease and 1 port wait for this host.", "Waiting for this host",
			waiting, "lease experiment should leave the host"},
		"/console/ports/" + p.ID.String():     {"Waits for", `<a href="` + host + `">L2 on node-1</a>`, "whose agent was last heard of at"},
		"/console/leases/" + next.ID.String(): {"It starts late unless lease experiment leaves node-1, which it should have left at ", "/console/leases/" + old.ID.String()},
	} {
		_, body := e.send(h, request{"GET", path, "", browser("admin")})
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s does not contain %q:\n%s", path, text, body)
			}
		}
	}
}

func TestLogin_SetsACookieThatEveryRequestValidates(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(identity.Noauth{})
	login := func(token, next string, header http.Header) (*http.Response, string) {
		return e.send(
			h,
			request{"POST", "/console/login", url.Values{"token": {token}, "next": {next}}.Encode(), header},
		)
	}
	r, _ := login("admin", "/console/entries/5", browser(""))
	cookies := r.Cookies()
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/console/entries/5" ||
		len(cookies) != 1 {
		t.Fatalf("log in: got %d to %q with %d cookies, want 303 to the page and one cookie",
			r.StatusCode, r.Header.Get("Location"), len(cookies))
	}
	if c := cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure ||
		c.Path != "/console" {
		t.Errorf("the cookie over HTTP: got %s, want HttpOnly, SameSite=Strict and Path=/console", c)
	}
	for token, want := range map[string]int{
		"ann":                     403, // Noauth gives a user without a project no role
		"":                        400,
		strings.Repeat("t", 2901): 400,
		"a\r\nb":                  401,
	} {
		if r, body := login(token, "/console/", browser("")); r.StatusCode != want || len(r.Cookies()) != 0 ||
			!strings.Contains(body, `role="alert"`) {
			t.Errorf(
				"log in with the token %.20q: got %d with %d cookies, want %d, no cookie and the reason",
				token, r.StatusCode, len(r.Cookies()), want,
			)
		}
	}
	for _, next := range []string{"https://evil.example/console/", "//evil.example/console/", "/placement/", "/console/\\evil.example", "/console/../placement/", "/console/%2e%2e/placement/", "/consolex", "", "%zz", "/console/" + strings.Repeat("x", 1024)} {
		if r, _ := login("admin", next, browser("")); r.Header.Get("Location") != "/console/" {
			t.Errorf("log in with the next page %q: got a redirect to %q, want the first page",
				next, r.Header.Get("Location"))
		}
	}
	if r, _ := login("ann:demo", "/console/leases", browser("")); r.StatusCode != http.StatusSeeOther ||
		r.Header.Get("Location") != "/console/leases" || len(r.Cookies()) != 1 {
		t.Errorf("log in as the member of a project: got %d to %q with %d cookies, want 303 and one cookie",
			r.StatusCode, r.Header.Get("Location"), len(r.Cookies()))
	}
	out, _ := e.send(h, request{"POST", "/console/logout", "", browser("admin")})
	if c := out.Cookies(); out.StatusCode != http.StatusSeeOther || len(c) != 1 || c[0].MaxAge >= 0 ||
		c[0].Value != "" {
		t.Errorf("log out: got %d with the cookies %v, want 303 and the removal of the cookie",
			out.StatusCode, c)
	}
}

func TestPages_RefuseMalformedCookies(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(identity.Noauth{})
	for name, path := range e.paths() {
		for _, cookie := range []string{"", "berth_console=", "berth_console=%%%"} {
			broken := browser("")
			broken.Set("Cookie", cookie)
			if r, body := e.send(h, request{"GET", path, "", broken}); r.StatusCode != 401 ||
				!strings.Contains(body, `name="token"`) || strings.Contains(body, `scope="row"`) {
				t.Errorf("page %s with the cookie %q: got %d, want 401 and the login form",
					name, cookie, r.StatusCode)
			}
		}
		stream := http.Header{"Accept": {"text/event-stream"}}
		if r, body := e.send(h, request{"GET", path, "", stream}); r.StatusCode != 401 ||
			!strings.HasPrefix(body, `{"error":`) {
			t.Errorf("stream of page %s without a token: got %d %s, want 401", name, r.StatusCode, body)
		}
	}
}

// The identity headers with which BERTH_AUTH=noauth trusts its clients must not raise the rights of a cookie.
func TestCookie_IgnoresIdentityHeaders(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	header := browser("ann:demo")
	header.Set("X-Roles", "admin")
	if r, _ := e.send(e.console(identity.Noauth{}), request{"GET", "/console/journal", "", header}); r.StatusCode != http.StatusForbidden {
		t.Errorf("a cookie without the role admin and X-Roles: admin: got %d, want 403", r.StatusCode)
	}
}

func TestWrites_FromOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(identity.Noauth{})
	for _, path := range []string{"/console/login", "/console/logout", "/console/journal/pause", "/console/journal/resume"} {
		for name, header := range map[string]http.Header{
			"cross-site":   {"Sec-Fetch-Site": {"cross-site"}},
			"same-site":    {"Sec-Fetch-Site": {"same-site"}},
			"other origin": {"Origin": {"https://evil.example"}},
			"null origin":  {"Origin": {"null"}},
		} {
			header.Set("Accept", "text/html")
			header.Set("Cookie", "berth_console="+encode("admin"))
			r, _ := e.send(h, request{"POST", path, "token=admin", header})
			if r.StatusCode != http.StatusForbidden || len(r.Cookies()) != 0 {
				t.Errorf("POST %s, %s: got %d with %d cookies, want 403 and no cookie",
					path, name, r.StatusCode, len(r.Cookies()))
			}
		}
	}
}

func TestDocuments_HaveSecurityHeaders(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(identity.Noauth{})
	paths := e.paths()
	paths["login"], paths["unknown"] = "/console/login", "/console/nothing"
	for name, path := range paths {
		r, _ := e.send(h, request{"GET", path, "", browser("admin")})
		csp := r.Header.Get("Content-Security-Policy")
		for _, rule := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(csp, rule) || strings.Contains(csp, "unsafe") {
				t.Errorf("page %s: got the policy %q, want %s and no unsafe source", name, csp, rule)
			}
		}
		for header, want := range map[string]string{
			"X-Frame-Options":              "DENY",
			"Referrer-Policy":              "same-origin",
			"Cache-Control":                "no-store",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Access-Control-Allow-Origin":  "",
		} {
			if got := r.Header.Get(header); got != want {
				t.Errorf("page %s: got %s %q, want %q", name, header, got, want)
			}
		}
	}
}

func TestPages_RefuseInvalidRequests(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(identity.Noauth{})
	for path, want := range map[string]int{
		"/console/ports/x": 404,
		"/console/ports/00000000-0000-0000-0000-000000000000": 404,
		"/console/entries/0":                                      404,
		"/console/entries/99999999999999999999":                   404,
		"/console/hosts/-1":                                       404,
		"/console/hosts/77":                                       404,
		"/console/providers/00000000-0000-0000-0000-000000000000": 404,
		"/console/trunks/00000000-0000-0000-0000-000000000000":    404,
		"/console/trunks/x":                                       404,
		"/console/consumers/00000000-0000-0000-0000-000000000000": 404,
		"/console/consumers/%00":                                  404,
		"/console/waiting/nobody":                                 404,
		"/console/waiting/agent?after=x":                          400,
		"/console/waiting/agent?name=%00":                         400,
		"/console/static/none.js":                                 404,
		"/console/static/..%2fstatic.go":                          404,
		"/console/%3Cscript%3E":                                   404,
	} {
		r, body := e.send(h, request{"GET", path, "", browser("admin")})
		if r.StatusCode != want || strings.Contains(body, "<script>") {
			t.Errorf("GET %s: got %d, want %d", path, r.StatusCode, want)
		}
	}
}

// The pages of providers and leases lead to the consumers that they name, and a consumer without allocations
// keeps the page with its history.
func TestConsumerPage_IsLinkedAndOutlivesItsAllocations(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(identity.Noauth{})
	reservation := e.gold.Reservations[0].ID.String()
	storetest.Allocate(t, e.Store, storetest.VCPUs(reservation, e.server, 1, inventory.ExpectAbsent()))
	page := func(path string) string {
		_, body := e.send(h, request{"GET", path, "", browser("admin")})
		return body
	}
	for path, consumer := range map[string]string{
		"/console/providers/" + e.server:        e.web.DeviceID,
		"/console/leases/" + e.gold.ID.String(): reservation,
	} {
		if body := page(path); !strings.Contains(body, `href="/console/consumers/`+consumer+`"`) {
			t.Errorf("GET %s: want a link to the consumer %s:\n%s", path, consumer, body)
		}
	}
	e.check(e.Inventory.DeleteAllocations(t.Context(), e.web.DeviceID))
	body := page("/console/consumers/" + e.web.DeviceID)
	if !strings.Contains(body, "no allocations") || !strings.Contains(body, "consumer generation 1 → none") {
		t.Errorf("a consumer without allocations: want its history:\n%s", body)
	}
}
