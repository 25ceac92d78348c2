package db

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

// Condition holds for an item whose field has one of the values. Each list defines its fields.
type Condition struct {
	Field string
	In    []string
}

// Order is one sort key.
type Order struct {
	Field      string
	Descending bool
}

// Column is the SQL of a field of a Condition or Order.
type Column struct {
	Expr     string // yields the value
	Cast     string // of the values that it is compared with
	Test     string // replaces Expr where an item has not exactly one value; %s stands for the values
	Unsorted bool
}

// ListQuery builds the SQL of a Listing: the part after "from".
type ListQuery struct {
	Columns map[string]Column
	Table   string // its column id identifies the items
	Args    []any
}

// arg adds a parameter and returns its placeholder.
func (l *ListQuery) arg(v any) string {
	l.Args = append(l.Args, v)
	return fmt.Sprintf("$%d", len(l.Args))
}

// Clauses returns the where, order by and limit clauses of the Listing. The condition visible takes the project. Fields come
// from Columns only, so that no text of a client becomes SQL.
func (l *ListQuery) Clauses(q Listing, visible string) (string, error) {
	where := []string{"true"}
	if q.Project != "" {
		where = append(where, fmt.Sprintf(visible, l.arg(q.Project)))
	}
	for _, c := range q.Where {
		col, ok := l.Columns[c.Field]
		if !ok {
			return "", fmt.Errorf("list: no field %q", c.Field)
		}
		values := l.arg(c.In) + "::text[]::" + col.Cast
		if col.Test != "" {
			where = append(where, fmt.Sprintf(col.Test, values))
			continue
		}
		where = append(where, col.Expr+" = any("+values+")")
	}
	var keys []string
	var down []bool
	for _, o := range q.Sort {
		col, ok := l.Columns[o.Field]
		if !ok || col.Unsorted {
			return "", fmt.Errorf("list: cannot sort by %q", o.Field)
		}
		keys, down = append(keys, col.Expr), append(down, o.Descending != q.Reverse)
	}
	keys, down = append(keys, l.Table+".id"), append(down, q.Reverse)
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
func (l *ListQuery) after(keys []string, down []bool, marker uuid.UUID) string {
	at := l.arg(marker)
	var ways []string
	equal := ""
	for i, key := range keys {
		value := fmt.Sprintf("(select %s from %s where id = %s)", key, l.Table, at)
		operator := " > "
		if down[i] {
			operator = " < "
		}
		ways = append(ways, "("+equal+key+operator+value+")")
		equal += key + " = " + value + " and "
	}
	return "(" + strings.Join(ways, " or ") + ")"
}

// Page puts the items of a reverse page into their order.
func Page[T any](items []T, q Listing) []T {
	if q.Reverse {
		slices.Reverse(items)
	}
	return items
}

// Tagged adds the columns that filter objects of the table by their tags.
func Tagged(table string, columns map[string]Column) map[string]Column {
	for field, test := range map[string]string{
		"tags":         table + ".tags @> %s",
		"tags_any":     table + ".tags && %s",
		"not_tags":     "not (" + table + ".tags @> %s)",
		"not_tags_any": "not (" + table + ".tags && %s)",
	} {
		columns[field] = Column{Test: test, Cast: "text[]", Unsorted: true}
	}
	return columns
}
