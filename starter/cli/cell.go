package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// cellLines converts a value to lines of a table cell. cellLines converts a list of objects to one line for
// each object, and every other value to one line.
func cellLines(v any) []string {
	all, ok := Objects(v)
	if !ok || len(all) == 0 {
		return []string{Cell(v)}
	}
	out := make([]string, len(all))
	for i, o := range all {
		out[i] = objectCell(o)
	}
	return out
}

// nativeNumbers replaces each json.Number by a number, because YAML would quote a json.Number.
func nativeNumbers(v any) any {
	switch v := v.(type) {
	case Object:
		out := make(Object, len(v))
		for k, e := range v {
			out[k] = nativeNumbers(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = nativeNumbers(e)
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

// Cell converts a value to the text of one table cell.
func Cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case string:
		if v == "" {
			return "-"
		}
		return Sanitize(v)
	case bool:
		return strconv.FormatBool(v)
	case []any:
		return listCell(v)
	case []string:
		return Sanitize(strings.Join(v, ", "))
	case Object:
		return objectCell(v)
	default:
		return Sanitize(fmt.Sprint(v))
	}
}

func listCell(v []any) string {
	if len(v) == 0 {
		return "-"
	}
	parts := make([]string, len(v))
	for i, e := range v {
		parts[i] = Cell(e)
	}
	if _, nested := v[0].(Object); !nested {
		return strings.Join(parts, ", ")
	}
	return strings.Join(parts, "; ")
}

// objectCell converts an object to the text of one cell. The text of the cell is the object's explanation if
// the object has one, otherwise KEY=VALUE pairs if the object has no nested values, otherwise JSON.
func objectCell(o Object) string {
	if len(o) == 0 {
		return "-"
	}
	if s, ok := o["sentence"].(string); ok && s != "" {
		return Sanitize(s)
	}
	if flat := flatPairs(o); flat != "" {
		return flat
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return fmt.Sprint(o)
	}
	return Sanitize(string(raw))
}

// flatPairs writes an object without nested values as KEY=VALUE. flatPairs skips empty values and time
// stamps. If the object has nested values, flatPairs returns an empty string.
func flatPairs(o Object) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(o)) {
		switch v := o[k].(type) {
		case Object, []any:
			return ""
		case nil:
			continue
		case string:
			if v == "" || k == "created_at" || k == "updated_at" {
				continue
			}
		}
		parts = append(parts, Sanitize(k)+"="+Cell(o[k]))
	}
	return strings.Join(parts, " ")
}

// Sanitize replaces control characters, so that a name cannot send escape sequences to the terminal.
func Sanitize(s string) string { return strings.Map(sanitizeRune, s) }

func sanitizeRune(r rune) rune {
	if isControl(r) || r == utf8.RuneError {
		return '·'
	}
	return r
}

// escapeControls replaces the control characters in a JSON text, except line breaks, by their escape
// sequences in JSON. encoding/json escapes only those below U+0020. escapeControls does the same in a YAML
// text, after quoteControls.
func escapeControls(text string) string {
	var b strings.Builder
	for _, r := range text {
		if needsEscape(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// quoteControls sets double quotes for the keys and values with control characters, because a YAML text has
// escape sequences only between double quotes.
func quoteControls(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && strings.ContainsFunc(n.Value, needsEscape) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range n.Content {
		quoteControls(child)
	}
}

func needsEscape(r rune) bool { return isControl(r) && r != '\n' }

// isControl reports whether a character can control a terminal or the direction of the text, or can end a
// line.
func isControl(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}
