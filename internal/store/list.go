package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Listing narrows, orders and pages a list.
type Listing struct {
	Where   []Condition // all of them hold
	Sort    []Order     // before the ID, which decides last
	Limit   int         // 0 for no limit
	Marker  uuid.UUID   // the page begins after this item; Nil for the first page
	Reverse bool        // the page ends before the marker instead
	Project string      // only what this project may see; empty for everything
}

// Condition holds for an item whose field has one of the values. Which fields exist, the noun's list says.
type Condition struct {
	Field string
	In    []string
}

// Order is one sort key.
type Order struct {
	Field      string
	Descending bool
}

// column is how a field of a Condition or Order stands in SQL.
type column struct {
	expr     string // yields the value
	cast     string // of the values that it is compared with
	test     string // instead of expr, for what is not one value per item; %s takes the values
	unsorted bool
}

// listing is a Listing's SQL: what follows "from".
type listing struct {
	columns map[string]column
	table   string // whose id the items are known by
	args    []any
}

// arg adds a parameter and returns its place.
func (l *listing) arg(v any) string {
	l.args = append(l.args, v)
	return fmt.Sprintf("$%d", len(l.args))
}

// clauses are the where, order by and limit of the Listing. Fields come from the columns' table only, so that no
// text of a client becomes SQL.
func (l *listing) clauses(q Listing, visible string) (string, error) {
	where := []string{"true"}
	if q.Project != "" {
		where = append(where, fmt.Sprintf(visible, l.arg(q.Project)))
	}
	for _, c := range q.Where {
		col, ok := l.columns[c.Field]
		if !ok {
			return "", fmt.Errorf("list: no field %q", c.Field)
		}
		values := l.arg(c.In) + "::text[]::" + col.cast
		if col.test != "" {
			where = append(where, fmt.Sprintf(col.test, values))
			continue
		}
		where = append(where, col.expr+" = any("+values+")")
	}
	var keys []string
	var down []bool
	for _, o := range q.Sort {
		col, ok := l.columns[o.Field]
		if !ok || col.unsorted {
			return "", fmt.Errorf("list: cannot sort by %q", o.Field)
		}
		keys, down = append(keys, col.expr), append(down, o.Descending != q.Reverse)
	}
	keys, down = append(keys, l.table+".id"), append(down, q.Reverse)
	if q.Marker != uuid.Nil {
		where = append(where, l.after(keys, down, q.Marker))
	}
	order := make([]string, len(keys))
	for i := range keys {
		order[i] = keys[i]
		if down[i] {
			order[i] += " desc"
		}
	}
	sql := " where " + strings.Join(where, " and ") + " order by " + strings.Join(order, ", ")
	if q.Limit > 0 {
		sql += " limit " + l.arg(q.Limit)
	}
	return sql, nil
}

// after is the condition that an item comes after the marker in the order of the keys.
func (l *listing) after(keys []string, down []bool, marker uuid.UUID) string {
	at := l.arg(marker)
	var ways []string
	equal := ""
	for i, key := range keys {
		value := fmt.Sprintf("(select %s from %s where id = %s)", key, l.table, at)
		operator := " > "
		if down[i] {
			operator = " < "
		}
		ways = append(ways, "("+equal+key+operator+value+")")
		equal += key + " = " + value + " and "
	}
	return "(" + strings.Join(ways, " or ") + ")"
}

// page puts the items of a reverse page into their order.
func page[T any](items []T, q Listing) []T {
	if q.Reverse {
		slices.Reverse(items)
	}
	return items
}

// tagged are the columns with those by which objects of the table are found by their tags.
func tagged(table string, columns map[string]column) map[string]column {
	for field, test := range map[string]string{
		"tags":         table + ".tags @> %s",
		"tags_any":     table + ".tags && %s",
		"not_tags":     "not (" + table + ".tags @> %s)",
		"not_tags_any": "not (" + table + ".tags && %s)",
	} {
		columns[field] = column{test: test, cast: "text[]", unsorted: true}
	}
	return columns
}
