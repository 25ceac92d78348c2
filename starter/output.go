package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// printer writes objects to stdout in the format that was asked for.
type printer struct {
	w      io.Writer
	format string
}

// show prints one object. The columns lead in the table, what else it has follows, but for links to itself.
func (p *printer) show(o object, columns []string) error {
	if p.format != "table" {
		return p.value(o)
	}
	keys := slices.DeleteFunc(slices.Clone(columns), func(k string) bool { _, ok := o[k]; return !ok })
	if _, explained := o[because]; explained {
		keys = append(keys, because)
	}
	for _, k := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(keys, k) && k != "links" {
			keys = append(keys, k)
		}
	}
	var rows [][]string
	for _, k := range keys {
		for i, line := range lines(o[k]) {
			rows = append(rows, []string{k, line})
			if i > 0 {
				rows[len(rows)-1][0] = ""
			}
		}
	}
	return table(p.w, []string{"field", "value"}, rows)
}

// because is the attribute in which the API explains an object.
const because = "berth:why"

// lines are the lines of a value: one, but of a list of objects one each.
func lines(v any) []string {
	all, ok := objects(v)
	if !ok || len(all) == 0 {
		return []string{cell(v)}
	}
	out := make([]string, len(all))
	for i, o := range all {
		out[i] = brief(o)
	}
	return out
}

// list prints objects, in the table only these columns of them.
func (p *printer) list(all []object, columns []string) error {
	if p.format != "table" {
		return p.value(all)
	}
	rows := make([][]string, len(all))
	for i, o := range all {
		for _, c := range columns {
			rows[i] = append(rows[i], cell(o[c]))
		}
	}
	return table(p.w, columns, rows)
}

// value prints anything as JSON or YAML.
func (p *printer) value(v any) error {
	if p.format == "yaml" {
		return p.yaml(v)
	}
	e := json.NewEncoder(p.w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// yaml prints what JSON would say, with the same keys.
func (p *printer) yaml(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	var same any
	if err := decode(raw, &same); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if raw, err = yaml.Marshal(plain(same)); err != nil {
		return fmt.Errorf("encode YAML: %w", err)
	}
	_, err = p.w.Write(raw)
	return err
}

// say prints a sentence for people; a machine gets v instead.
func (p *printer) say(v any, format string, args ...any) error {
	if p.format != "table" {
		return p.value(v)
	}
	_, err := fmt.Fprintln(p.w, clean(fmt.Sprintf(format, args...)))
	return err
}

// plain makes numbers of JSON's number literals, which YAML would quote.
func plain(v any) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for k, e := range v {
			out[k] = plain(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	default:
		return v
	}
}

func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case string:
		if v == "" {
			return "-"
		}
		return clean(v)
	case bool:
		return strconv.FormatBool(v)
	case []any:
		return cells(v)
	case []string:
		return clean(strings.Join(v, ", "))
	case object:
		return brief(v)
	default:
		return clean(fmt.Sprint(v))
	}
}

func cells(v []any) string {
	if len(v) == 0 {
		return "-"
	}
	parts := make([]string, len(v))
	for i, e := range v {
		parts[i] = cell(e)
	}
	if _, nested := v[0].(object); !nested {
		return strings.Join(parts, ", ")
	}
	return strings.Join(parts, "; ")
}

// brief puts an object into one cell: its sentence if it explains something, else all of it.
func brief(o object) string {
	if len(o) == 0 {
		return "-"
	}
	if s, ok := o["sentence"].(string); ok && s != "" {
		return clean(s)
	}
	if flat := pairsOf(o); flat != "" {
		return flat
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return fmt.Sprint(o)
	}
	return clean(string(raw))
}

// pairsOf writes an object without depth as KEY=VALUE, without what is empty or only a time stamp; it is empty for
// an object with depth.
func pairsOf(o object) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(o)) {
		switch v := o[k].(type) {
		case object, []any:
			return ""
		case nil:
			continue
		case string:
			if v == "" || k == "created_at" || k == "updated_at" {
				continue
			}
		}
		parts = append(parts, clean(k)+"="+cell(o[k]))
	}
	return strings.Join(parts, " ")
}

// clean keeps a name from talking to the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r) {
			return '·'
		}
		return r
	}, s)
}

// table aligns columns with two blanks between them.
func table(w io.Writer, head []string, rows [][]string) error {
	widths := make([]int, len(head))
	lines := slices.Concat([][]string{upper(head)}, rows)
	for _, line := range lines {
		for i, c := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, line := range lines {
		for i, c := range line {
			b.WriteString(c)
			if i < len(line)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)+2))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func upper(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.ToUpper(w)
	}
	return out
}
