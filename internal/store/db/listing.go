package db

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Listing contains the filters, the order and the page of a list request.
type Listing struct {
	Where   []Condition // an item must meet all conditions
	Sort    []Order     // sort keys; the ID is always the last key
	Limit   int         // maximum number of items; 0: no limit
	Marker  uuid.UUID   // the page begins after this item; Nil for the first page
	Reverse bool        // the page ends before the marker instead of beginning after the marker
	Project string      // list only items that this project may see; empty: all items
	// fields that the caller reads; empty: all fields. A store may leave the other fields empty
	Fields []string
}

// Needs reports whether the caller of the list request reads a field of the items.
func (l Listing) Needs(field string) bool {
	return len(l.Fields) == 0 || slices.Contains(l.Fields, field)
}

// Condition requires that an item's field has one of the values. The Columns of a ListQuery define the fields
// that a Condition may name.
type Condition struct {
	Field string
	In    []string
}

// OneOfIDs returns the condition that a field of an item is one of the IDs.
func OneOfIDs(field string, ids []uuid.UUID) Condition {
	c := Condition{Field: field, In: make([]string, len(ids))}
	for i, id := range ids {
		c.In[i] = id.String()
	}
	return c
}

// Order is one sort key.
type Order struct {
	Field      string
	Descending bool
}

// Column is the SQL of a field of a Condition or Order.
type Column struct {
	Expr string // SQL expression of the value
	Cast string // SQL type of the values that the field is compared with
	// Test is an SQL condition that replaces the comparison with Expr, for example if an item may have no or
	// several values; %s stands for the values.
	Test     string
	Unsorted bool
}

// ListQuery builds the SQL of a Listing: the part after "from".
type ListQuery struct {
	Columns map[string]Column
	Table   string // table of the items; the column `id` of the table identifies an item
	Args    []any
}

// arg adds a parameter to the SQL query and returns the placeholder of the parameter, for example $3.
func (l *ListQuery) arg(v any) string {
	l.Args = append(l.Args, v)
	return fmt.Sprintf("$%d", len(l.Args))
}

// Visibility is a reason for which a project sees an object.
type Visibility struct {
	// SQL condition on the object or, if there is a Parent, on the row of the parent; $project is the project
	Condition string
	Parent    string // table of the parents; empty: the condition is on the object
	Key       string // column of the object that has the ID of the parent
}

// Clauses returns the where, order by and limit clauses of the Listing. A project sees the objects for which
// there is one of the reasons. The SQL for a field comes only from Columns, so that no text from a client
// becomes SQL.
func (l *ListQuery) Clauses(q Listing, reasons ...Visibility) (string, error) {
	where := []string{"true"}
	for _, c := range q.Where {
		col, ok := l.Columns[c.Field]
		if !ok {
			return "", fmt.Errorf("list: the objects have no field %q to filter by", c.Field)
		}
		values := l.arg(c.In) + "::text[]::" + col.Cast
		if col.Test != "" {
			where = append(where, fmt.Sprintf(col.Test, values))
			continue
		}
		equal := col.Expr + " = any(" + values + ")"
		if len(c.In) == 1 { // an index has the items with one value in the order of its other columns
			equal = col.Expr + " = (" + values + ")[1]"
		}
		where = append(where, equal)
	}
	var keys []string
	var down []bool
	for _, o := range q.Sort {
		col, ok := l.Columns[o.Field]
		if !ok || col.Unsorted {
			return "", fmt.Errorf("list: the objects cannot be sorted by field %q", o.Field)
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
	page := " order by " + strings.Join(order, ", ")
	if q.Limit > 0 {
		page += " limit " + l.arg(q.Limit)
	}
	if q.Project != "" {
		where = append(where, l.visible(q, reasons, strings.Join(where, " and "), page))
	}
	return " where " + strings.Join(where, " and ") + page, nil
}

// visible returns the SQL condition for the objects that the project sees. A page of objects consists of
// objects from the pages of those for which there is one reason, or that have one parent. Each of these pages
// can use an index. Otherwise PostgreSQL would read the table in the order of the page until it has found as
// many visible objects, and most projects see only a few of all objects.
func (l *ListQuery) visible(q Listing, reasons []Visibility, where, page string) string {
	project := l.arg(q.Project)
	paged := q.Limit > 0 && len(reasons) > 1
	each := make([]string, len(reasons))
	for i, r := range reasons {
		condition := strings.ReplaceAll(r.Condition, "$project", project)
		table, key := l.Table, l.Table+"."+r.Key
		switch {
		case r.Parent == "" && !paged:
			each[i] = condition
		case r.Parent == "":
			each[i] = fmt.Sprintf("(select %[1]s.id from %[1]s where %[2]s and %[3]s%[4]s)", table, where, condition, page)
		case !paged:
			each[i] = fmt.Sprintf("%s = any(array(select id from %s where %s))", key, r.Parent, condition)
		default:
			each[i] = fmt.Sprintf("(select page.id from %s as parent cross join lateral "+
				"(select %[2]s.id from %[2]s where %[3]s and %[4]s = parent.id%[5]s) as page where %[6]s)",
				r.Parent, table, where, key, page, condition)
		}
	}
	if paged {
		return l.Table + ".id = any(array(" + strings.Join(each, " union all ") + "))"
	}
	return "(" + strings.Join(each, " or ") + ")"
}

// after returns the SQL condition that selects the items that come after the marker in the order of the sort
// keys.
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

// Page reverses the items if q.Reverse is set, because the items of such a page were read backwards from the
// marker.
func Page[T any](items []T, q Listing) []T {
	if q.Reverse {
		slices.Reverse(items)
	}
	return items
}

// Tagged adds to `columns` the fields tags, tags_any, not_tags and not_tags_any, which filter the objects of
// the table by their tags.
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

// ListIDs lists the IDs of the items of a list request, in the order of the request. The parameter `reasons`
// is that of ListQuery.Clauses.
func ListIDs(ctx context.Context, q Querier, l ListQuery, items Listing, reasons ...Visibility) ([]uuid.UUID, error) {
	clauses, err := l.Clauses(items, reasons...)
	if err != nil {
		return nil, err
	}
	ids, err := QueryAll(ctx, q, pgx.RowTo[uuid.UUID],
		"select "+l.Table+".id from "+l.Table+clauses, l.Args...)
	if err != nil {
		return nil, fmt.Errorf("list the IDs of %ss: %w", l.Table, err)
	}
	return Page(ids, items), nil
}
