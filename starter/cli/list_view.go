package cli

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Output formats that only lists have.
const (
	formatCSV  = "csv"  // comma-separated values
	formatName = "name" // a line for each object, in the form that `starter why` accepts: port/ID
	formatWide = "wide" // a table of all attributes
)

var listFormats = []string{formatCSV, formatName, formatWide}

// sortFlag is a flag that exactly the commands have that print a list with a listView.
const sortFlag = "sort-by"

// listView says which part of a list starter prints, and in which order.
type listView struct {
	columns *[]string // attributes; empty: those of the resource
	sortBy  *string   // attribute; empty: the order of the API
	limit   *int      // maximum number of objects; 0: all
}

func listViewFlags(f *pflag.FlagSet) listView {
	return listView{
		columns: f.StringArrayP("column", "c", nil, "print only this attribute; may be repeated"),
		sortBy:  f.String(sortFlag, "", "sort by this attribute"),
		limit:   f.Int("limit", 0, "print at most this number of objects (default: all)"),
	}
}

// arrange sorts the objects and cuts the list. It returns an error if no object has an attribute that the
// flags name.
func (v listView) arrange(s *Session, r *Resource, all []Object) ([]Object, error) {
	if *v.limit < 0 {
		return nil, UsageError("--limit %d is negative", *v.limit)
	}
	for _, name := range append(slices.Clone(*v.columns), *v.sortBy) {
		if name != "" {
			if err := checkAttribute(r, all, name); err != nil {
				return nil, err
			}
		}
	}
	if *v.sortBy != "" {
		slices.SortStableFunc(all, func(a, b Object) int { return compareValues(a[*v.sortBy], b[*v.sortBy]) })
	}
	if *v.limit > 0 && len(all) > *v.limit {
		of := "of"
		if r.PageParameter != "" { // the API may have more objects than it has sent
			of = "of at least"
		}
		fmt.Fprintf(s.Stderr, "%s %s %s\n", thousands(*v.limit), of, thousands(len(all)))
		all = all[:*v.limit]
	}
	return all, nil
}

// compareValues compares two values of an attribute: missing values come first, then numbers, compared as
// numbers, then all others, compared as texts.
func compareValues(a, b any) int {
	x, isX := a.(json.Number)
	y, isY := b.(json.Number)
	if isX && isY {
		m, _ := x.Float64()
		n, _ := y.Float64()
		return cmp.Compare(m, n)
	}
	return cmp.Or(cmp.Compare(kindRank(a), kindRank(b)), cmp.Compare(Cell(a), Cell(b)))
}

// kindRank returns the position of the kind of a value in a sorted list.
func kindRank(v any) int {
	switch v.(type) {
	case nil:
		return 0
	case json.Number:
		return 1
	}
	return 2
}

// thousands writes a number with a comma after each group of three digits.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// print prints the arranged objects in the output format of the session.
func (v listView) print(s *Session, r *Resource, all []Object) error {
	columns := r.Columns
	if len(*v.columns) > 0 {
		columns = *v.columns
	}
	switch s.Output.Format {
	case formatName:
		for _, o := range all {
			if _, err := fmt.Fprintf(s.Output.Writer, "%s/%s\n", r.Name, Cell(o[r.IDKey])); err != nil {
				return err
			}
		}
		return nil
	case formatWide:
		table := Printer{Writer: s.Output.Writer, Format: "table"}
		return table.PrintList(all, wideColumns(columns, all))
	case formatCSV:
		return printCSV(s, columns, all)
	case "table":
		return s.Output.PrintList(all, columns)
	}
	if len(*v.columns) > 0 {
		for i, o := range all {
			all[i] = Object{}
			for _, c := range columns {
				all[i][c] = o[c]
			}
		}
	}
	return s.Output.PrintList(all, columns)
}

// wideColumns returns the columns, and after them all other attributes of the objects except links.
func wideColumns(columns []string, all []Object) []string {
	others := map[string]bool{}
	for _, o := range all {
		for name := range o {
			others[name] = name != "links" && !slices.Contains(columns, name)
		}
	}
	maps.DeleteFunc(others, func(_ string, shown bool) bool { return !shown })
	return append(slices.Clone(columns), slices.Sorted(maps.Keys(others))...)
}

// formulaSigns are the characters with which a text begins that a spreadsheet evaluates as a formula.
const formulaSigns = "=+-@\t\r"

// printCSV prints a line with the names of the columns, and a line for each object. A missing value is empty.
// A text that a spreadsheet would evaluate, such as a name of an object that another person has chosen,
// begins with an apostrophe.
func printCSV(s *Session, columns []string, all []Object) error {
	w := csv.NewWriter(s.Output.Writer)
	rows := [][]string{columns}
	for _, o := range all {
		var cells []string
		for _, c := range columns {
			text := ""
			if v := o[c]; v != nil && v != "" {
				text = Cell(v)
			}
			if _, number := o[c].(json.Number); !number && strings.IndexAny(text, formulaSigns) == 0 {
				text = "'" + text
			}
			cells = append(cells, text)
		}
		rows = append(rows, cells)
	}
	return w.WriteAll(rows)
}

// checkAttribute returns an error if no object, and no column of the resource, has the attribute.
func checkAttribute(r *Resource, all []Object, name string) error {
	attributes := map[string]bool{}
	for _, column := range r.Columns {
		attributes[column] = true
	}
	for _, o := range all {
		for name := range o {
			attributes[name] = true
		}
	}
	if attributes[name] {
		return nil
	}
	return Errorf(
		ExitUsage,
		"The attributes are "+strings.Join(slices.Sorted(maps.Keys(attributes)), ", ")+".",
		"no %s has the attribute %q",
		r.Name,
		name,
	)
}
