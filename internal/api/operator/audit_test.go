package operator_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"berth/internal/api/operator"
	"berth/internal/auditlog"
	"berth/internal/identity"
	"berth/internal/store/auditstore"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

func TestAudit_RefusesInvalidQueries(t *testing.T) {
	t.Parallel()
	h := serve(t)
	for query, want := range map[string]int{
		"":                                    http.StatusOK,
		"?order=asc&limit=5000":               http.StatusOK,
		"?since=2026-01-02T03:04:05%2B02:00":  http.StatusOK,
		"?order=random":                       http.StatusBadRequest,
		"?limit=0":                            http.StatusBadRequest,
		"?limit=-1":                           http.StatusBadRequest,
		"?marker=99999999999999999999":        http.StatusBadRequest,
		"?since=yesterday":                    http.StatusBadRequest,
		"?until=0000-01-01T00:00:00Z":         http.StatusBadRequest,
		"?outcome=maybe":                      http.StatusBadRequest,
		"?project=":                           http.StatusBadRequest,
		"?project=a&project=b":                http.StatusBadRequest,
		"?unknown=1":                          http.StatusBadRequest,
		"/export?limit=1":                     http.StatusBadRequest,
		"/export?since=9999-12-31T23:59:59Z":  http.StatusOK,
		"/export?since=10000-01-01T00:00:00Z": http.StatusBadRequest,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/operator/v1/audit"+query, nil)
		r.Header.Set("X-Auth-Token", "admin")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("GET /operator/v1/audit%s: got status %d, body %s, want %d", query, w.Code, w.Body, want)
		}
	}
	if got, _ := send(t, h, "eve:demo", http.MethodGet, "/operator/v1/audit", ""); got != http.StatusForbidden {
		t.Errorf("GET /operator/v1/audit as a member: got status %d, want 403", got)
	}
}

// flushHook calls a function after each flush of the response.
type flushHook struct {
	http.ResponseWriter
	flushed func()
}

func (w flushHook) FlushError() error {
	defer w.flushed()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w flushHook) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestAudit_ExportWithoutAllRecordsBreaksTheConnection(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	ctx := db.WithRecorder(t.Context(),
		&auditstore.Request{Record: func() auditlog.Record { return auditlog.Record{At: time.Now()} }})
	if err := s.DB.InTx(ctx, func(tx db.Tx) error {
		for range 1500 {
			tx.Changed(db.Change{Type: "port", ID: "p"})
		}
		_, err := tx.Exec(ctx, `insert into resource_class (name) values ('CUSTOM_A')`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Audit.Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	api := newAPI(t, operator.Options{Audit: s.Audit, Identity: identity.Noauth{}})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(flushHook{
			w,
			func() { once.Do(func() { storetest.Exec(t, url, `alter table audit_record rename to elsewhere`) }) },
		}, r)
	}))
	t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		server.URL+"/operator/v1/audit/export", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", "admin")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()

	body, err := io.ReadAll(answer.Body)

	if lines := bytes.Count(body, []byte("\n")); !errors.Is(err, io.ErrUnexpectedEOF) || lines != 1000 {
		t.Errorf(
			"export that cannot read the second page: got %d lines and the error %v, want 1000 lines and a broken connection",
			lines,
			err,
		)
	}
}
