package text

import "fmt"

// CheckJSONCost returns an error if a JSON text has too many levels, or too many keys and values. It looks at
// each byte once and decodes nothing, so it costs far less than what it refuses. Up to the first error of the
// syntax, it counts exactly what a decoder finds.
func CheckJSONCost(raw []byte, maxDepth, maxTokens int) error {
	depth, tokens, inString := 0, 1, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			tokens++
		case c == '}' || c == ']':
			depth--
		case c == ',' || c == ':':
			tokens++
		}
		switch {
		case depth > maxDepth:
			return fmt.Errorf("nested deeper than %d levels", maxDepth)
		case tokens > maxTokens:
			return fmt.Errorf("more than %d keys and values", maxTokens)
		}
	}
	return nil
}
