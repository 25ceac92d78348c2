package db

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// Without a sampled trace, the tracer of SQL statements allocates nothing. The test does not run in parallel,
// because it counts allocations.
func TestSQLTracer_CostsNothingWithoutSampledTrace(t *testing.T) {
	ctx, tracer, batch := t.Context(), sqlTracer{}, &pgx.Batch{}
	if n := testing.AllocsPerRun(100, func() {
		tracer.TraceQueryEnd(tracer.TraceQueryStart(ctx, nil, pgx.TraceQueryStartData{SQL: "select 1"}), nil, pgx.TraceQueryEndData{})
		of := tracer.TraceBatchStart(ctx, nil, pgx.TraceBatchStartData{Batch: batch})
		tracer.TraceBatchQuery(of, nil, pgx.TraceBatchQueryData{SQL: "select 1"})
		tracer.TraceBatchEnd(of, nil, pgx.TraceBatchEndData{})
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

func TestSQLSpan_NameAndTextOfStatement(t *testing.T) {
	t.Parallel()
	if got := firstWord("\n\t\tinsert into note (x)"); got != "insert" {
		t.Errorf("first word: got %q, want insert", got)
	}
	if got := firstWord("begin"); got != "begin" {
		t.Errorf("first word: got %q, want begin", got)
	}
	if got := shortSQL("\n\tselect a\n\tfrom b"); got != "select a from b" {
		t.Errorf("text: got %q", got)
	}
}
