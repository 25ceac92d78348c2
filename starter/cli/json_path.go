package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/theory/jsonpath"
)

// queryFormat begins the output formats that print only the values that a JSONPath query selects, for example
// jsonpath=$.id.
const queryFormat = "jsonpath="

// parseQuery returns the JSONPath query (RFC 9535) of an output format, or nil if the format has none.
func parseQuery(format string) (*jsonpath.Path, error) {
	text, found := strings.CutPrefix(format, queryFormat)
	if !found {
		return nil, nil
	}
	query, err := jsonpath.Parse(text)
	if err != nil {
		return nil, Errorf(
			ExitUsage,
			"Write for example 'jsonpath=$.id' for one object, or 'jsonpath=$[*].id' for a list; "+
				`quote other names: $["berth:why"].`,
			"--output: %q is not a JSONPath query: %s",
			text,
			strings.TrimPrefix(err.Error(), jsonpath.ErrPathParse.Error()+": "),
		)
	}
	return query, nil
}

// printQuery prints a line for each value of a document that the query selects: a text as it is, and every
// other value as JSON. printQuery returns an error if a query that selects one value, such as $.id, finds
// none; a query that selects any number of values may find none.
func (p *Printer) printQuery(document any) error {
	document, err := plain(document)
	if err != nil {
		return err
	}
	values := p.Query.Select(document)
	if len(values) == 0 && p.Query.Query().Singular() != nil {
		return Errorf(ExitUsage, contentOf(document), "the output has no value at %s", p.Query)
	}
	for _, v := range values {
		text, isText := v.(string)
		if !isText {
			raw, err := json.Marshal(v)
			if err != nil {
				return fmt.Errorf("encode: %w", err)
			}
			text = string(raw)
		}
		if _, err := fmt.Fprintln(p.Writer, Sanitize(text)); err != nil {
			return err
		}
	}
	return nil
}

// contentOf says in a sentence what a query of the document can select.
func contentOf(document any) string {
	switch d := document.(type) {
	case Object:
		return "The attributes are " + strings.Join(slices.Sorted(maps.Keys(d)), ", ") + "."
	case []any:
		return fmt.Sprintf("The output is a list of %d objects; $[*].id selects an attribute of all.", len(d))
	default:
		return ""
	}
}
