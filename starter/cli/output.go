package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/theory/jsonpath"
	"go.yaml.in/yaml/v3"
)

// Printer writes objects to stdout as table, JSON or YAML, or the values of them that a query selects.
type Printer struct {
	Writer io.Writer // a TextWriter
	Stdout io.Writer // the standard output, for Terminal and for bytes that must not change
	Format string
	Query  *jsonpath.Path // of a format that begins with jsonpath=; nil for the others
}

// Terminal returns the terminal that is the standard output, or false if the standard output is none.
func (p *Printer) Terminal() (*os.File, bool) {
	f, ok := p.Stdout.(*os.File)
	return f, ok && term.IsTerminal(f.Fd())
}

// PrintObject prints one object. In the table format, PrintObject prints the attributes in `columns` first,
// then all other attributes of the object except links.
func (p *Printer) PrintObject(o Object, columns []string) error {
	if p.Format != "table" {
		return p.PrintDocument(o)
	}
	keys := slices.DeleteFunc(slices.Clone(columns), func(k string) bool { _, ok := o[k]; return !ok })
	if _, explained := o[ExplanationKey]; explained {
		keys = append(keys, ExplanationKey)
	}
	for _, k := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(keys, k) && k != "links" {
			keys = append(keys, k)
		}
	}
	var rows [][]string
	for _, k := range keys {
		for i, line := range cellLines(o[k]) {
			rows = append(rows, []string{k, line})
			if i > 0 {
				rows[len(rows)-1][0] = ""
			}
		}
	}
	return WriteTable(p.Writer, []string{"field", "value"}, rows)
}

// ExplanationKey is the attribute in which the API explains the status of an object.
const ExplanationKey = "berth:why"

// PrintList prints a list of objects. In the table format, PrintList prints only the attributes in `columns`
// of each object.
func (p *Printer) PrintList(all []Object, columns []string) error {
	if p.Format != "table" {
		return p.PrintDocument(all)
	}
	rows := make([][]string, len(all))
	for i, o := range all {
		for _, c := range columns {
			rows[i] = append(rows[i], Cell(o[c]))
		}
	}
	return WriteTable(p.Writer, columns, rows)
}

// PrintDocument prints any value as JSON or YAML, or the parts of it that the query selects.
func (p *Printer) PrintDocument(v any) error {
	switch {
	case p.Query != nil:
		return p.printQuery(v)
	case p.Format == "yaml":
		return p.printYAML(v)
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(p.Writer, escapeControls(text.String()))
	return err
}

// PrintNextDocument prints a document after another document was printed. In the YAML format,
// PrintNextDocument prints a separator between the two documents.
func (p *Printer) PrintNextDocument(v any) error {
	if p.Format == "yaml" {
		if _, err := fmt.Fprintln(p.Writer, "---"); err != nil {
			return err
		}
	}
	return p.PrintDocument(v)
}

// printYAML prints a value as YAML, with the same keys that the JSON of the value has.
func (p *Printer) printYAML(v any) error {
	same, err := plain(v)
	if err != nil {
		return err
	}
	var document yaml.Node
	if err := document.Encode(nativeNumbers(same)); err != nil {
		return fmt.Errorf("encode YAML: %w", err)
	}
	quoteControls(&document)
	raw, err := yaml.Marshal(&document)
	if err != nil {
		return fmt.Errorf("encode YAML: %w", err)
	}
	_, err = io.WriteString(p.Writer, escapeControls(string(raw)))
	return err
}

// plain converts a value to the objects, lists and simple values that its JSON has.
func plain(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	var same any
	if err := Decode(raw, &same); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return same, nil
}

// PrintMessage prints the sentence `format` in the table format, and the value v in all others.
func (p *Printer) PrintMessage(v any, format string, args ...any) error {
	if p.Format != "table" {
		return p.PrintDocument(v)
	}
	_, err := fmt.Fprintln(p.Writer, Sanitize(fmt.Sprintf(format, args...)))
	return err
}
