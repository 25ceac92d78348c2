package auditstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/auditlog"
	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/auditstore"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// request returns a context of a request whose writes are recorded at the time `at`.
func request(ctx context.Context, at time.Time) context.Context {
	return db.WithRecorder(ctx, &auditstore.Request{Record: func() auditlog.Record {
		return auditlog.Record{
			At:         at,
			Outcome:    auditlog.Success,
			User:       "ann",
			Project:    "demo",
			Roles:      []string{"member"},
			RequestID:  "req-1",
			Address:    "192.0.2.1",
			Method:     "PUT",
			ObjectType: "default",
		}
	}})
}

// seal seals the waiting records and returns the whole log.
func seal(t *testing.T, s *store.Store) auditlog.Page {
	t.Helper()
	if _, err := s.Audit.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	return page(t, s)
}

func page(t *testing.T, s *store.Store) auditlog.Page {
	t.Helper()
	p, err := s.Audit.Page(t.Context(), auditstore.Query{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func verify(p auditlog.Page, remembered *auditlog.Position) error {
	v := auditlog.Verifier{Remembered: remembered}
	if err := v.Check(p); err != nil {
		return err
	}
	return v.Finish(p)
}

func addClasses(t *testing.T, s *store.Store, at time.Time, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := s.Inventory.EnsureClass(request(t.Context(), at), name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAudit_OneRecordForACommittedWriteAndNoneForOthers(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	ctx := request(t.Context(), time.Now())

	addClasses(t, s, time.Now(), "CUSTOM_A", "CUSTOM_A") // the second call writes nothing
	failed := errors.New("failed")
	if err := s.DB.InTx(ctx, func(tx db.Tx) error {
		if _, err := tx.Exec(ctx, `insert into resource_class (name) values ('CUSTOM_B')`); err != nil {
			return err
		}
		return failed
	}); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if err := s.DB.InTx(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(ctx, `select from resource_class for update`)
		return err
	}); err != nil {
		t.Fatal(err)
	}

	if p := page(t, s); p.Waiting != 1 {
		t.Errorf("waiting records: got %d, want 1", p.Waiting)
	}
}

func TestAudit_ChangesOfASavepointThatIsRolledBackLeaveNoRecord(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	ctx := request(t.Context(), time.Now())
	insert := func(tx db.Tx, name string) error {
		tx.Changed(db.Change{Type: "resource_class", ID: name})
		_, err := tx.Exec(ctx, `insert into resource_class (name) values ($1)`, name)
		return err
	}
	if err := s.DB.InTx(ctx, func(tx db.Tx) error {
		if err := db.Savepoint(ctx, tx, func(inner db.Tx) error {
			return errors.Join(insert(inner, "CUSTOM_A"), errors.New("failed"))
		}); err == nil {
			t.Error("savepoint: got no error, want that of its function")
		}
		return insert(tx, "CUSTOM_B")
	}); err != nil {
		t.Fatal(err)
	}

	if p := seal(t, s); len(p.Records) != 1 || !strings.Contains(string(p.Records[0].Record), "CUSTOM_B") {
		t.Errorf("records: got %s, want one about CUSTOM_B", p.Records)
	}
}

func TestAudit_ChangeAndRecordAreCommittedTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"the record cannot be written": `alter table audit_pending add constraint no_records check (record is null)`,
		"the commit fails": `
			create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused at the commit'; end $$;
			create constraint trigger refuse after insert on resource_class deferrable initially deferred for each row execute function refuse()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			storetest.ExecScript(t, url, script)

			if _, err := s.Inventory.EnsureClass(request(t.Context(), time.Now()), "CUSTOM_A"); err == nil {
				t.Error("create a resource class: got no error")
			}

			var classes int
			if err := storetest.Connect(t, url).QueryRow(t.Context(), `select count(*) from resource_class where name = 'CUSTOM_A'`).Scan(&classes); err != nil {
				t.Fatal(err)
			}
			if p := page(t, s); classes != 0 || p.Waiting != 0 {
				t.Errorf("after the failure: got %d resource classes and %d audit records, want none",
					classes, p.Waiting)
			}
		})
	}
}

func TestAudit_AllocationsLeaveOneRecordPerConsumer(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	host := storetest.AddHost(t, s, "host", map[string]inventory.Inventory{
		"VCPU": {
			Total:           8,
			MinUnit:         1,
			MaxUnit:         8,
			StepSize:        1,
			AllocationRatio: 1,
		},
	})
	ctx, consumer := request(t.Context(), time.Now()), uuid.NewString()

	for _, w := range []inventory.ConsumerWrite{
		storetest.VCPUs(consumer, host, 1, inventory.ExpectAbsent()),
		storetest.VCPUs(consumer, host, 2, inventory.ExpectGeneration(1)),
	} {
		if err := s.Inventory.PutAllocations(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Inventory.PutAllocations(ctx, storetest.VCPUs(uuid.NewString(), host, 9, inventory.ExpectAbsent())); err == nil {
		t.Fatal("allocation above the capacity: got no error")
	}
	if err := s.Inventory.DeleteAllocations(ctx, consumer); err != nil {
		t.Fatal(err)
	}
	if err := s.Inventory.DeleteAllocations(ctx, consumer); err == nil {
		t.Fatal("second deletion: got no error")
	}

	if p := seal(t, s); len(p.Records) != 3 {
		t.Errorf("records: got %d, want 3: create, change, delete: %s", len(p.Records), p.Records)
	}
}

func TestAudit_VerifyFindsEveryManipulation(t *testing.T) {
	t.Parallel()
	// The text of each changed field of a record has the same length, so that only the hash shows the change.
	change := func(from, to string) string {
		return `update audit_record set record = regexp_replace(record::text, '` + from + `', '` + to + `')::json where sequence = 2`
	}
	for name, test := range map[string]struct {
		statement  string
		broken     int64
		remembered bool // only a remembered head shows it
	}{
		"changed time":           {statement: change(`"at":"2026`, `"at":"2025`), broken: 2},
		"changed outcome":        {statement: change(`"outcome":"success"`, `"outcome":"omitted"`), broken: 2},
		"changed user":           {statement: change(`"user":"ann"`, `"user":"eve"`), broken: 2},
		"changed project":        {statement: change(`"project":"demo"`, `"project":"root"`), broken: 2},
		"changed roles":          {statement: change(`"member"`, `"reader"`), broken: 2},
		"changed request ID":     {statement: change(`"req-1"`, `"req-2"`), broken: 2},
		"changed address":        {statement: change(`192.0.2.1`, `192.0.2.2`), broken: 2},
		"changed method":         {statement: change(`"PUT"`, `"GET"`), broken: 2},
		"changed object type":    {statement: change(`resource_class`, `resource_klass`), broken: 2},
		"changed object":         {statement: change(`CUSTOM_B`, `CUSTOM_X`), broken: 2},
		"changed white space":    {statement: `update audit_record set record = (record::text || ' ')::json where sequence = 2`, broken: 2},
		"changed hash":           {statement: `update audit_record set hash = sha256(hash) where sequence = 3`, broken: 3},
		"exchanged records":      {statement: `update audit_record a set record = b.record from audit_record b where a.sequence + b.sequence = 5 and a.sequence in (2, 3)`, broken: 2},
		"deletion of the first":  {statement: `delete from audit_record where sequence = 1`, broken: 1},
		"deletion in the middle": {statement: `delete from audit_record where sequence = 2`, broken: 2},
		"deletion of the last":   {statement: `delete from audit_record where sequence = 3`, broken: 3},
		"deletion of all":        {statement: `delete from audit_record`, broken: 1},
		"insertion in the middle": {statement: `update audit_record set sequence = 4 where sequence = 3;
			insert into audit_record (sequence, record, hash) select 3, record, hash from audit_record where sequence = 2`, broken: 3},
		"insertion with a computed hash at the end": {statement: `insert into audit_record (sequence, record, hash)
			select 4, record, sha256(hash || convert_to(E'4\n' || record::text, 'UTF8')) from audit_record where sequence = 3`, broken: 4},
		"changed head":   {statement: `update audit_chain set hash = sha256(hash)`, broken: 3},
		"changed anchor": {statement: `update audit_chain set anchor_hash = sha256(hash)`, broken: 1},
		"deletion of the last with a changed head": {statement: `delete from audit_record where sequence = 3;
			update audit_chain set sequence = 2, hash = (select hash from audit_record where sequence = 2)`, broken: 3, remembered: true},
		"all hashes computed anew": {statement: change(`"user":"ann"`, `"user":"eve"`) + `;
			update audit_record a set hash = sha256(b.hash || convert_to(E'2\n' || a.record::text, 'UTF8')) from audit_record b where a.sequence = 2 and b.sequence = 1;
			update audit_record a set hash = sha256(b.hash || convert_to(E'3\n' || a.record::text, 'UTF8')) from audit_record b where a.sequence = 3 and b.sequence = 2;
			update audit_chain set hash = (select hash from audit_record where sequence = 3)`, broken: 3, remembered: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			addClasses(t, s, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "CUSTOM_A", "CUSTOM_B", "CUSTOM_C")
			before := seal(t, s)
			if err := verify(before, &before.Head); err != nil || before.Head.Sequence != 3 {
				t.Fatalf("untouched log: got the head %s and the error %v, want record 3 and no error",
					before.Head, err)
			}

			storetest.ExecScript(t, url, test.statement)

			var broken *auditlog.Break
			if err := verify(page(t, s), nil); test.remembered != (err == nil) ||
				err != nil && (!errors.As(err, &broken) || broken.Sequence != test.broken) {
				t.Errorf(
					"verify without a remembered head: got the error %v, want one about record %d unless only a remembered head shows the change",
					err,
					test.broken,
				)
			}
			if err := verify(page(t, s), &before.Head); !errors.As(err, &broken) ||
				broken.Sequence != test.broken {
				t.Errorf("verify with a remembered head: got the error %v, want one about record %d",
					err, test.broken)
			}
		})
	}
}

func TestAudit_VerifyWorksAfterRetention(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	addClasses(t, s, time.Now().Add(-48*time.Hour), "CUSTOM_A", "CUSTOM_B")
	addClasses(t, s, time.Now(), "CUSTOM_C")
	before := seal(t, s)

	deleted, err := s.Audit.Trim(t.Context(), 24*time.Hour)

	after := page(t, s)
	if err != nil || deleted != 2 || after.Anchor != before.Records[1].Position || len(after.Records) != 1 {
		t.Fatalf(
			"retention: got %d deleted, the anchor %s, %d records, error %v; want 2, %s, 1, no error",
			deleted, after.Anchor, len(after.Records), err, before.Records[1].Position,
		)
	}
	if err := verify(after, &before.Head); err != nil {
		t.Error(err)
	}
}

func TestAudit_DenialsBeyondTheLimitAreCounted(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for range 502 {
		s.Audit.Deny(auditlog.Record{At: time.Now(), Outcome: auditlog.Denied}, "192.0.2.1")
	}
	s.Audit.Deny(auditlog.Record{At: time.Now(), Outcome: auditlog.Denied}, "192.0.2.2")

	if err := s.Audit.FlushDenials(t.Context()); err != nil {
		t.Fatal(err)
	}

	if p := page(t, s); p.Waiting != 502 || s.Audit.OmittedDenials() != 2 {
		t.Errorf(
			"got %d waiting records and %d omitted, want 500 + 1 denials, 1 record of the omission, and 2 omitted",
			p.Waiting,
			s.Audit.OmittedDenials(),
		)
	}
}

func TestAudit_SealAndTrimSkipALockedChain(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	addClasses(t, s, time.Now(), "CUSTOM_A")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	rival := storetest.NewRival(t, url)
	rival.Do(`begin`)
	rival.Do(`select from audit_chain for no key update`)

	for name, change := range map[string]func() (int, error){
		"seal": func() (int, error) { return s.Audit.Seal(ctx) },
		"trim": func() (int, error) { n, err := s.Audit.Trim(ctx, time.Nanosecond); return int(n), err },
	} {
		if n, err := change(); n != 0 || err != nil {
			t.Errorf("%s while the chain is locked: got %d records, error %v; want none", name, n, err)
		}
	}

	rival.Do(`rollback`)
	if n, err := s.Audit.Seal(t.Context()); n != 1 || err != nil {
		t.Errorf("seal after the chain was released: got %d records, error %v; want 1", n, err)
	}
}

// The records wait while no process with the role relay runs, and each scrape of the metrics counts them.
func TestState_CountsALimitedNumberOfWaitingRecords(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	for _, want := range []int64{auditstore.MaxWaiting - 1, auditstore.MaxWaiting, auditstore.MaxWaiting} {
		if want == auditstore.MaxWaiting-1 {
			storetest.Exec(t, url, `insert into audit_pending (record) select '{}' from generate_series(1, $1)`, want)
		} else {
			storetest.Exec(t, url, `insert into audit_pending (record) values ('{}')`)
		}
		if got, err := s.Audit.State(t.Context()); err != nil || got != (auditstore.State{Waiting: want}) {
			t.Errorf("state: got %+v, error %v; want %d waiting records", got, err, want)
		}
	}
}
