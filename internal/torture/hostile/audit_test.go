package hostile

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"berth/internal/auditlog"
	"berth/internal/server/servertest"
)

// auditBodies are the bodies of requests that change an object although the request with the body of
// validBodies, or an earlier request of the test, has already changed it.
var auditBodies = map[string]string{
	"PUT /networking/v2.0/ports/{id}/bindings/{host}": `{"binding":{"vnic_type":"normal","profile":{"a":7}}}`,
	"POST /agent/v1/reports":                          `{"reports":[{"port":"{port}","entity":"L2","host":"cmp-1"}]}`,
}

// takeAuditRecords returns the records that wait for their sealing, and deletes them.
func (h *hostileClient) takeAuditRecords() (records []auditlog.Record) {
	h.t.Helper()
	rows, err := h.conn.Query(h.t.Context(), `
		with taken as (delete from audit_pending returning id, record)
		select record::text from taken order by id`)
	if err != nil {
		h.t.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		h.t.Fatal(err)
	}
	for _, text := range texts {
		var r auditlog.Record
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			h.t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}

// changedTables returns the tables whose rows have changed since the last call.
func (h *hostileClient) changedTables() (changed []string) {
	h.t.Helper()
	written := h.writtenTables()
	if len(written) == 0 {
		return nil
	}
	for table, digest := range h.digests(written) {
		if h.rows[table] != digest {
			changed = append(changed, table)
		}
		h.rows[table] = digest
	}
	return changed
}

// versioned are the types of objects that have a revision or a generation.
var versioned = []string{
	"network",
	"subnet",
	"port",
	"trunk",
	"security_group",
	"security_group_rule",
	"resource_provider",
	"consumer",
}

// TestAudit_EachChangeLeavesOneRecord sends a request to every route that changes something. A request leaves
// a record in the audit log if and only if it has changed rows.
func TestAudit_EachChangeLeavesOneRecord(t *testing.T) {
	t.Parallel()
	h := newHostileClient(t)
	h.takeAuditRecords()
	recorded := map[string]bool{}
	for _, r := range openAPIRoutes(h) {
		operation := r.Method + " " + r.Path
		if r.Method == http.MethodGet || r.Unaudited {
			continue
		}
		body, ok := auditBodies[operation]
		if !ok {
			body = validBodies[operation]
		}
		a := attack{method: r.Method, path: h.concretePath(r.Path), body: h.fillGenerations(h.fill(body))}
		status, _, header, err := h.send(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		records, changed := h.takeAuditRecords(), h.changedTables()
		want := 0
		if len(changed) > 0 {
			want = 1
		}
		if operation == "POST /placement/reshaper" { // it changes a provider and a consumer
			want = 2
		}
		if len(records) != want || status >= 400 && want > 0 {
			t.Errorf("%s: got status %d, changes in the tables %v and %d audit records, want %d: %+v",
				operation, status, changed, len(records), want, records)
		}
		for _, got := range records {
			recorded[operation] = true
			checkAuditRecord(t, r.Method, r.Path, header.Get("X-Openstack-Request-Id"), got)
		}
	}
	if len(recorded) < 75 {
		t.Errorf("operations with a record: got %d, want at least 75", len(recorded))
	}
}

// A host can report about every port whose ID it knows, as often as it likes.
func TestAudit_IgnoredReportsOfAnAgentLeaveNoRecord(t *testing.T) {
	t.Parallel()
	h := newHostileClient(t)
	h.takeAuditRecords()
	ignored := attack{
		method: http.MethodPost,
		path:   "/agent/v1/reports",
		body:   h.fill(`{"reports":[{"port":"{port}","entity":"L2","host":"elsewhere"}]}`),
	}
	if status, body, _, err := h.send(t.Context(), ignored); err != nil || status != http.StatusOK {
		t.Fatalf("report of a host without the port: got %d %s, error %v; want 200", status, body, err)
	}
	if changed := h.changedTables(); !slices.Contains(changed, "port") {
		t.Fatalf("changed tables: got %v, want the number of ignored reports of the port", changed)
	}
	if records := h.takeAuditRecords(); len(records) != 0 {
		t.Errorf("audit records of an ignored report: got %+v, want none", records)
	}
}

// checkAuditRecord checks a record of a request of the administrator.
func checkAuditRecord(t *testing.T, method, route, request string, got auditlog.Record) {
	t.Helper()
	api := strings.TrimPrefix(route, "/")
	for _, prefix := range []string{"placement", "networking", "reservation", "agent/v1", "journal/v1", "operator/v1"} {
		if strings.HasPrefix(api, prefix+"/") {
			api = prefix
		}
	}
	want := auditlog.Record{
		At:         got.At,
		Outcome:    auditlog.Success,
		User:       "admin",
		Project:    "admin",
		Roles:      []string{"admin", "service"},
		RequestID:  request,
		Address:    "127.0.0.1",
		API:        api,
		Method:     method,
		Route:      route,
		ObjectType: got.ObjectType,
		ObjectID:   got.ObjectID,
		Before:     got.Before,
		After:      got.After,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s %s: the audit record differs (-want +got):\n%s", method, route, d)
	}
	if got.At.IsZero() || got.ObjectType == "" || got.ObjectID == "" && got.ObjectType != "journal" {
		t.Errorf("%s %s: got a record without a time or an object: %+v", method, route, got)
	}
	if !slices.Contains(versioned, got.ObjectType) || strings.HasPrefix(route, "/reservation/") ||
		strings.HasPrefix(route, "/operator/") {
		return // objects without a revision
	}
	if method+route == "PUT/placement/resource_providers/{uuid}" {
		return // a new name does not change the generation
	}
	if got.Before == nil && got.After == nil ||
		got.Before != nil && got.After != nil && *got.After < *got.Before {
		t.Errorf(
			"%s %s: got a record of a %s without its revision or generation, or with a smaller one after the change: %+v",
			method, route, got.ObjectType, got,
		)
	}
}

// TestAudit_EachDenialLeavesOneRecord sends a request to every route as a caller without rights.
func TestAudit_EachDenialLeavesOneRecord(t *testing.T) {
	t.Parallel()
	h := newHostileClient(t)
	want := map[string]string{} // operations by request ID
	for _, r := range openAPIRoutes(h) {
		if r.Open {
			continue
		}
		a := attack{
			method: r.Method,
			path:   h.concretePath(r.Path),
			token:  "eve:demo",
			body:   h.fillGenerations(h.fill(validBodies[r.Method+" "+r.Path])),
			header: http.Header{"X-Roles": {"unheard"}},
		}
		status, _, header, err := h.send(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		if status == http.StatusForbidden {
			want[header.Get("X-Openstack-Request-Id")] = r.Method + " " + r.Path
		}
	}
	if len(want) < 150 {
		t.Errorf("refused operations: got %d, want at least 150", len(want))
	}
	got := map[string]string{}
	servertest.Await(t, "the records of the refused requests", func() bool {
		for _, r := range h.takeAuditRecords() {
			if r.Outcome != auditlog.Denied {
				continue // written before the test, while the objects of the test were created
			}
			if r.User != "eve" || r.Project != "demo" || !slices.Equal(r.Roles, []string{"unheard"}) ||
				r.Status != http.StatusForbidden ||
				r.Address != "127.0.0.1" ||
				r.ObjectType == "" {
				t.Errorf("record of a refused request: got %+v", r)
			}
			if _, twice := got[r.RequestID]; twice {
				t.Errorf("request %s: got two records", r.RequestID)
			}
			got[r.RequestID] = r.Method + " " + r.Route
		}
		return len(got) >= len(want)
	})
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("records of refused requests by request ID differ (-want +got):\n%s", d)
	}
}
