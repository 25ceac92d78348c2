package auditstore

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/auditlog"
)

const (
	maxDenials          = 2000        // refused requests that wait to be written
	maxDenialsPerClient = 500         // of them, those of one client
	denialInterval      = time.Second // between two writes
)

// denials holds refused requests until they are written. A refused request has no transaction, and must not
// cost one: otherwise a caller without any rights could keep the database busy.
type denials struct {
	mu       sync.Mutex
	waiting  []denial
	byClient map[string]int
	omitted  int64 // requests that were not recorded since the last write
	total    int64 // requests that were not recorded since the start of the process
	arrived  chan struct{}
}

// denial is the text of the record of a refused request. The record itself can have long texts, which the
// client has chosen.
type denial struct{ client, text string }

func newDenials() *denials {
	return &denials{byClient: map[string]int{}, arrived: make(chan struct{}, 1)}
}

// Deny records a refused request of a client, which may have many addresses. Deny does not wait for the
// database. If too many refused requests wait, Deny only counts the request.
func (s *Store) Deny(r auditlog.Record, client string) {
	d := s.denials
	d.mu.Lock()
	if len(d.waiting) >= maxDenials || d.byClient[client] >= maxDenialsPerClient {
		d.omitted++
		d.total++
	} else {
		d.waiting = append(d.waiting, denial{client, text(r)})
		d.byClient[client]++
	}
	d.mu.Unlock()
	d.wake()
}

// wake makes WriteDenials write the waiting requests.
func (d *denials) wake() {
	select {
	case d.arrived <- struct{}{}:
	default:
	}
}

// OmittedDenials returns the number of refused requests that this process did not record.
func (s *Store) OmittedDenials() int64 {
	s.denials.mu.Lock()
	defer s.denials.mu.Unlock()
	return s.denials.total
}

// WriteDenials writes refused requests until ctx ends, and then those that still wait.
func (s *Store) WriteDenials(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), denialInterval)
			defer cancel()
			s.tryFlush(last)
			return
		case <-s.denials.arrived:
		}
		s.tryFlush(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(denialInterval):
		}
	}
}

func (s *Store) tryFlush(ctx context.Context) {
	if err := s.FlushDenials(ctx); err != nil {
		s.denials.wake()
		slog.WarnContext(
			ctx,
			"writing refused requests to the audit log failed; they are written later", "error", err,
		)
	}
}

// FlushDenials writes the refused requests that wait. If the write fails, they wait for the next one.
func (s *Store) FlushDenials(ctx context.Context) error {
	d := s.denials
	d.mu.Lock()
	waiting, omitted := d.waiting, d.omitted
	d.mu.Unlock()
	if len(waiting) == 0 && omitted == 0 {
		return nil
	}
	texts := make([]string, 0, len(waiting)+1)
	for _, r := range waiting {
		texts = append(texts, r.text)
	}
	if omitted > 0 {
		texts = append(texts,
			text(auditlog.Record{At: time.Now(), Outcome: auditlog.Omitted, Omitted: omitted}))
	}
	err := s.db.InBatch(ctx, func(batch *pgx.Batch) {
		batch.Queue(insertAllPending, texts)
	})
	if err != nil {
		return fmt.Errorf("write refused requests: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting, d.omitted = append([]denial(nil), d.waiting[len(waiting):]...), d.omitted-omitted
	clear(d.byClient)
	for _, r := range d.waiting {
		d.byClient[r.client]++
	}
	return nil
}
