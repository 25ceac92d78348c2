package top

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/starter/cli"
)

// newReader returns a reader of an API that answers GET requests with the given bodies. A path without a body
// gets 403, as a member gets from the routes for administrators.
func newReader(t *testing.T, bodies map[string]any) reader {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := bodies[r.URL.RequestURI()]
		if !ok {
			body, ok = bodies[r.URL.Path]
		}
		if !ok {
			w.WriteHeader(http.StatusForbidden)
			body = cli.Object{"error": cli.Object{"code": 403, "message": "Policy doesn't allow it"}}
		}
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(api.Close)
	settings, err := cli.ReadSettings([]string{"BERTH_URL=" + api.URL, "BERTH_DATA=" + t.TempDir(), "TEMPORAL_ADDRESS=127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	s := &cli.Session{Settings: &settings, Stderr: t.Output(), Now: func() time.Time { return noon }, TimeoutFactor: 1000}
	if err := s.Open(t.Output()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return reader{s}
}

// read reads a screen and returns the texts of its cells, row by row.
func read(t *testing.T, s *screen) (*screen, []string) {
	t.Helper()
	c, err := s.read(t.Context())
	if err != nil {
		t.Fatalf("read %s: %v", s.title, err)
	}
	s.accept(c, nil, noon)
	var rows []string
	for _, r := range s.visible() {
		var texts []string
		for _, c := range r.cells {
			texts = append(texts, c.text)
		}
		rows = append(rows, strings.Join(texts, " | "))
	}
	return s, rows
}

// before returns a time before noon in the format of the API.
func before(d time.Duration) string { return noon.Add(-d).UTC().Format(time.RFC3339) }

func explanationOf(sentence string) cli.Object { return cli.Object{"sentence": sentence} }

const (
	webID  = "00000000-0000-4000-8000-000000000001"
	goldID = "00000000-0000-4000-8000-000000000002"
)

func TestWaiting_HasOneRowForEachPartyWithTheLongestWait(t *testing.T) {
	t.Parallel()
	r := newReader(t, map[string]any{
		"/operator/v1/waiting": cli.Object{"cut": true, "waiting": []cli.Object{
			{"party": "agent", "name": "L2", "host": "cmp-1", "label": "L2 on cmp-1", "hint": "h", "objects": "port", "count": 2, "since": before(9 * time.Minute), "longest": "port/" + webID, "listed": true},
			{"party": "administrator", "label": "an administrator", "hint": "Retry or skip.", "objects": "journal entry", "count": 1, "since": before(time.Hour), "longest": "journal/7"},
			{"party": "rabbitmq", "label": "RabbitMQ", "hint": "Not sent yet.", "objects": "notification", "count": 5000, "at_least": true, "since": before(time.Second), "longest": "agent-notifications/" + goldID},
		}},
		"/networking/v2.0/ports/" + webID: cli.Object{"port": cli.Object{"id": webID, "name": "web", "status": "DOWN", "berth:why": explanationOf("DOWN: it waits for L2 on cmp-1")}},
		"/operator/v1/waiting/agent?host=cmp-1&limit=200&name=L2": cli.Object{"next": nil, "objects": []cli.Object{
			{"object": "trunk/" + goldID, "name": "", "status": "", "since": before(time.Minute), "reason": ""},
			{"object": "port/" + webID, "name": "web", "status": "DOWN", "since": before(9 * time.Minute), "deadline": before(4 * time.Minute)},
		}},
		"/networking/v2.0/trunks/" + goldID: cli.Object{"trunk": cli.Object{"id": goldID, "name": "t", "status": "BUILD", "berth:why": explanationOf("BUILD: it waits for L2")}},
	})
	s, got := read(t, r.waiting())
	want := []string{
		"1h00m | an administrator | 1 journal entry | journal/7 | Retry or skip.",
		"9m | L2 on cmp-1 | 2 ports | web | DOWN: it waits for L2 on cmp-1",
		"1s | RabbitMQ | at least 5000 notifications | agent-notifications/" + goldID + " | Not sent yet.",
	}
	if d := cmp.Diff(want, got); d != "" || s.content.note == "" {
		t.Errorf("what waits: got the note %q and the rows (-want +got):\n%s", s.content.note, d)
	}

	s.cursor = 1
	agent, _ := s.selected()
	objects, got := read(t, agent.open())
	want = []string{"9m | port web | DOWN | DOWN: it waits for L2 on cmp-1", "1m | trunk " + goldID + " | - | BUILD: it waits for L2"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what waits for L2 on cmp-1 (-want +got):\n%s", d)
	}
	port, _ := objects.selected()
	if !port.alarm {
		t.Error("got no alarm for a port whose deadline has passed, want one")
	}
	objects.cursor = 1
	trunk, _ := objects.selected()
	if why, _ := read(t, trunk.open()); why.content.text != "trunk/"+goldID+": BUILD: it waits for L2 (from the API; a trunk has no workflow)\n" {
		t.Errorf("the explanation of a trunk: got %q", why.content.text)
	}

	for row, want := range map[int]string{0: "journal", 2: "agent-notifications/" + goldID} {
		s.cursor = row
		if selected, _ := s.selected(); selected.open().title != want {
			t.Errorf("row %d opens %q, want %q", row, selected.open().title, want)
		}
	}
}

func TestWaiting_IsRefusedInWordsToAMember(t *testing.T) {
	t.Parallel()
	_, err := newReader(t, nil).waiting().read(t.Context())
	if got := problem(err); !strings.Contains(got, "Policy doesn't allow it (403). The token has no permission") {
		t.Errorf("what waits, for a member: got %q, want the refusal in words", got)
	}
}

func TestHosts_JoinsAgentsAndReservableHosts(t *testing.T) {
	t.Parallel()
	bodies := map[string]any{
		"/networking/v2.0/agents": cli.Object{"agents": []cli.Object{
			{"agent_type": "Open vSwitch agent", "host": "cmp-1", "alive": false, "admin_state_up": true, "heartbeat_timestamp": "2000-01-31 10:00:00", "berth:awaited": 3},
			{"agent_type": "DHCP agent", "host": "cmp-1", "alive": true, "admin_state_up": true, "berth:awaited": 0},
			{"agent_type": "DHCP agent", "host": "net-1", "alive": true, "admin_state_up": false},
		}},
		"/reservation/v1/os-hosts": cli.Object{"hosts": []cli.Object{
			{"id": "1", "hypervisor_hostname": "cmp-1", "reservable": true, "berth:quarantine": nil},
			{"id": "2", "hypervisor_hostname": "cmp-2", "reservable": false, "berth:quarantine": "it failed"},
		}},
		"/networking/v2.0/ports?binding%3Ahost_id=cmp-1&limit=200": cli.Object{"ports": []cli.Object{
			{"id": goldID, "name": "db", "status": "ACTIVE", "admin_state_up": true, "device_owner": "compute:nova", "fixed_ips": []cli.Object{{"ip_address": "10.0.0.2"}}},
			{"id": webID, "name": "web", "status": "DOWN", "admin_state_up": true},
		}},
	}
	s, got := read(t, newReader(t, bodies).hosts())
	since := age(noon.Sub(time.Date(2000, 1, 31, 10, 0, 0, 0, time.UTC)))
	want := []string{
		"cmp-1 | 1 of 2 | " + since + " | 3 | reservable | silent: Open vSwitch agent",
		"cmp-2 | 0 of 0 | - | 0 | no | in quarantine: it failed",
		"net-1 | 0 of 1 | - | 0 | - | disabled: DHCP agent",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("hosts (-want +got):\n%s", d)
	}
	host, _ := s.selected()
	_, got = read(t, host.open())
	want = []string{"DOWN | - | web | -", "ACTIVE | compute:nova | db | 10.0.0.2"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("ports of a host (-want +got):\n%s", d)
	}

	delete(bodies, "/reservation/v1/os-hosts")
	s, got = read(t, newReader(t, bodies).hosts())
	if len(got) != 2 || !strings.Contains(s.content.note, "Policy doesn't allow it (403)") {
		t.Errorf("hosts without the permission for the hosts of leases: got %v and the note %q, want the agents and the refusal", got, s.content.note)
	}
	delete(bodies, "/networking/v2.0/agents")
	if _, err := newReader(t, bodies).hosts().read(t.Context()); cli.ExitCode(err) != cli.ExitDenied {
		t.Errorf("hosts without any permission: got the error %v, want the refusal", err)
	}
}

func TestLeases_MarksDegradedLeases(t *testing.T) {
	t.Parallel()
	start := time.Date(2030, 2, 1, 9, 0, 0, 0, time.Local)
	r := newReader(t, map[string]any{
		"/reservation/v1/leases": cli.Object{"leases": []cli.Object{
			{"id": goldID, "name": "gold", "status": "ACTIVE", "degraded": true, "start_date": start.UTC().Format("2006-01-02T15:04:05.000000"), "end_date": start.Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000")},
		}},
		"/reservation/v1/leases/" + goldID: cli.Object{"lease": cli.Object{"id": goldID, "name": "gold", "status": "ACTIVE", "berth:why": explanationOf("Lease gold is degraded")}},
	})
	s, got := read(t, r.leases())
	lease, _ := s.selected()
	if d := cmp.Diff([]string{"ACTIVE | 2030-02-01 09:00 | 2030-02-01 10:00 | gold"}, got); d != "" || !lease.alarm {
		t.Errorf("leases: got alarm %t and (-want +got):\n%s", lease.alarm, d)
	}
	why, _ := read(t, lease.open())
	if !strings.Contains(why.content.text, "Lease gold is degraded (from the API; Temporal is unavailable)") {
		t.Errorf("got the explanation %q, want the one of the API", why.content.text)
	}
}

func TestJournal_ShowsOpenEntriesFirst(t *testing.T) {
	t.Parallel()
	entry := func(seq int, state, problem string) cli.Object {
		return cli.Object{"seq": seq, "state": state, "operation": "create", "object_type": "port", "object_id": webID, "name": "web", "failures": 1, "last_error": problem, "created_at": before(time.Minute)}
	}
	bodies := map[string]any{}
	for state, entries := range map[string][]cli.Object{
		"failed":     {entry(3, "failed", "503")},
		"processing": {},
		"pending":    {entry(2, "pending", "")},
		"completed":  {entry(9, "completed", ""), entry(8, "completed", "")},
	} {
		order := "asc"
		if state == "completed" {
			order = "desc"
		}
		bodies["/journal/v1/entries?limit=200&order="+order+"&state="+state] = cli.Object{"entries": append([]cli.Object{}, entries...)}
	}
	_, got := read(t, newReader(t, bodies).journal(""))
	want := []string{
		"failed | 3 | 1m | 1 | create port web | 503",
		"pending | 2 | 1m | 1 | create port web | -",
		"completed | 9 | 1m | 1 | create port web | -",
		"completed | 8 | 1m | 1 | create port web | -",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("journal (-want +got):\n%s", d)
	}
	_, got = read(t, newReader(t, bodies).journal("failed"))
	if d := cmp.Diff(want[:1], got); d != "" {
		t.Errorf("journal with a filter (-want +got):\n%s", d)
	}
}

func TestReadBoth_AnOutageIsAnError(t *testing.T) {
	t.Parallel()
	lost := cli.Unavailable("the API", "", errors.New("refused"))
	denied := cli.Errorf(cli.ExitDenied, "", "denied")
	for _, c := range []struct{ first, second, want error }{{lost, nil, lost}, {nil, lost, lost}, {denied, lost, lost}, {lost, denied, lost}, {denied, nil, nil}, {nil, nil, nil}} {
		_, err := readBoth(func() error { return c.first }, func() error { return c.second })
		if c.want == nil && err != nil || c.want != nil && cli.ExitCode(err) != cli.ExitCode(c.want) {
			t.Errorf("read with the errors %v and %v: got %v, want %v", c.first, c.second, err, c.want)
		}
	}
}

func TestAge_HasOneOrTwoUnits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second:                 "0s",
		59 * time.Second:             "59s",
		59*time.Minute + time.Second: "59m",
		3*time.Hour + 2*time.Minute:  "3h02m",
		50 * time.Hour:               "2d",
	} {
		if got := age(d); got != want {
			t.Errorf("age of %s: got %s, want %s", d, got, want)
		}
	}
}
