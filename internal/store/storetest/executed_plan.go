package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// ExecutedPlan is a node of the plan of a query that PostgreSQL has executed.
type ExecutedPlan struct {
	Type    string  `json:"Node Type"`
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	Dropped float64 `json:"Rows Removed by Join Filter"`
	Plans   []ExecutedPlan
}

// ExplainAnalyze executes a query and returns the root of its plan.
func ExplainAnalyze(t testing.TB, c *pgx.Conn, sql string, args ...any) ExecutedPlan {
	t.Helper()
	var text []byte
	if err := c.QueryRow(t.Context(), `explain (analyze, timing off, format json) `+sql, args...).Scan(&text); err != nil {
		t.Fatal(fmt.Errorf("%w: %s", err, sql))
	}
	var plans []struct{ Plan ExecutedPlan }
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}

// Processed returns the number of rows that the node and the nodes below it have returned and discarded.
func (p ExecutedPlan) Processed() float64 {
	rows := (p.Rows + p.Removed + p.Dropped) * p.Loops
	for _, below := range p.Plans {
		rows += below.Processed()
	}
	return rows
}

// Read returns the number of rows that the scans of tables and indexes at and below the node have read.
func (p ExecutedPlan) Read() float64 {
	rows := 0.0
	if strings.HasSuffix(p.Type, "Scan") && p.Type != "Subquery Scan" && p.Type != "Bitmap Heap Scan" {
		rows = (p.Rows + p.Removed) * p.Loops
	}
	for _, below := range p.Plans {
		rows += below.Read()
	}
	return rows
}
