// Package docpage reads the tables of a page of the documentation, so that a test can compare the page with
// the code.
package docpage

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Messages is the page that describes the messages between berth and other services.
const Messages = "docs/messages.md"

var codeSpan = regexp.MustCompile("`([^`]+)`")

// Rows returns the cells of the first table below a heading of a page, without the head of the table. The
// heading is written as in the page, such as "## Signals". The test fails if the page has no such table.
func Rows(t testing.TB, page, heading string) [][]string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(file), "../..", page))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(raw), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	var rows [][]string
	for line := range strings.SplitSeq(section, "\n") {
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("%s: the heading %q has no table", page, heading)
	}
	return rows[2:] // after the head and the line below it
}

// Names returns the texts in backticks in one cell.
func Names(cell string) []string {
	names := []string{}
	for _, m := range codeSpan.FindAllStringSubmatch(cell, -1) {
		names = append(names, m[1])
	}
	return names
}

// Table returns the texts in backticks in the second cell of each row, by the text in backticks in the first
// cell.
func Table(t testing.TB, page, heading string) map[string][]string {
	t.Helper()
	table := map[string][]string{}
	for _, row := range Rows(t, page, heading) {
		for _, name := range Names(row[0]) {
			if _, twice := table[name]; twice {
				t.Errorf("%s, %q: the table has two rows for `%s`, want one", page, heading, name)
			}
			table[name] = Names(row[1])
		}
	}
	return table
}

// CompareFields fails the test if the first table below a heading lists other fields, or other types of
// fields, than the JSON of the Go type T has. The first cell of a row is the name of a field, and the second
// is its type, as FieldType writes it.
func CompareFields[T any](t testing.TB, page, heading string) {
	t.Helper()
	got := map[string]string{}
	for _, row := range Rows(t, page, heading) {
		for _, name := range Names(row[0]) {
			got[name] = row[1]
		}
	}
	want := map[string]string{}
	for f := range reflect.TypeFor[T]().Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		want[name] = FieldType(f.Type)
		if strings.Contains(options, "omitempty") {
			want[name] += ", optional"
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s, %q: the table has other fields than %s (-code +page):\n%s",
			page, heading, reflect.TypeFor[T](), d)
	}
}

// FieldType returns the JSON type of a Go type as the documentation writes it.
func FieldType(t reflect.Type) string {
	switch {
	case t.String() == "time.Time":
		return "time"
	case t.String() == "uuid.UUID":
		return "UUID"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return FieldType(t.Elem())
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "integer"
	case reflect.String:
		return "string"
	case reflect.Slice:
		return "list of " + strings.TrimSuffix(FieldType(t.Elem()), "s") + "s"
	case reflect.Interface:
		return "object"
	default:
		return "object"
	}
}
