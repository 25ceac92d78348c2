package policy

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// maxNesting limits how deep parentheses and negations may nest.
const maxNesting = 64

// Parse reads a rule in the grammar of oslo.policy: conditions joined by "and", "or", "not" and parentheses,
// where "and" binds closer than "or". The empty rule and the rule "@" allow every request; the rule "!"
// denies every request. For a rule that cannot be parsed, Parse returns an error, whereas oslo.policy denies
// every request.
func Parse(text string) (Check, error) {
	tokens := tokenize(text)
	if len(tokens) == 0 {
		return constant(true), nil
	}
	p := &parser{tokens: tokens}
	check, err := p.either(0)
	switch {
	case err != nil:
		return nil, err
	case p.at < len(p.tokens):
		return nil, fmt.Errorf("unexpected %q after the end of the rule", p.tokens[p.at])
	}
	return check, nil
}

// tokenize splits the text at blanks, and splits parentheses off both ends of each word. Parentheses in the
// middle of a word are not split off.
func tokenize(text string) (tokens []string) {
	for word := range strings.FieldsSeq(text) {
		inner := strings.TrimLeft(word, "(")
		tokens = append(tokens, slices.Repeat([]string{"("}, len(word)-len(inner))...)
		word, inner = inner, strings.TrimRight(inner, ")")
		if inner != "" {
			tokens = append(tokens, inner)
		}
		tokens = append(tokens, slices.Repeat([]string{")"}, len(word)-len(inner))...)
	}
	return tokens
}

type parser struct {
	tokens []string
	at     int
}

// accept consumes the next token and returns true if the token is the given word, in upper or lower case.
func (p *parser) accept(word string) bool {
	if p.at < len(p.tokens) && strings.EqualFold(p.tokens[p.at], word) {
		p.at++
		return true
	}
	return false
}

func (p *parser) either(depth int) (Check, error) {
	return joined(p, "or", func() (Check, error) {
		return joined(p, "and", func() (Check, error) { return p.one(depth) },
			func(parts []Check) Check { return all(parts) })
	}, func(parts []Check) Check { return oneOf(parts) })
}

// joined parses one condition, or several conditions with the given word ("and" or "or") between them. If
// there is only one condition, joined returns this condition unchanged.
func joined(p *parser, word string, part func() (Check, error), join func([]Check) Check) (Check, error) {
	var parts []Check
	for {
		check, err := part()
		if err != nil {
			return nil, err
		}
		parts = append(parts, check)
		if !p.accept(word) {
			break
		}
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return join(parts), nil
}

func (p *parser) one(depth int) (Check, error) {
	switch {
	case depth > maxNesting:
		return nil, fmt.Errorf("the rule is nested deeper than %d levels", maxNesting)
	case p.accept("not"):
		check, err := p.one(depth + 1)
		return not{check}, err
	case p.accept("("):
		check, err := p.either(depth + 1)
		if err == nil && !p.accept(")") {
			err = errors.New("a closing parenthesis is missing")
		}
		return check, err
	case p.at == len(p.tokens):
		return nil, errors.New("the rule ends where a condition is expected")
	}
	p.at++
	return condition(p.tokens[p.at-1])
}

var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// condition reads KIND:VALUE, "@" or "!".
func condition(text string) (Check, error) {
	switch text {
	case "@":
		return constant(true), nil
	case "!":
		return constant(false), nil
	}
	kind, value, ok := strings.Cut(text, ":")
	if !ok || kind == "" {
		return nil, fmt.Errorf("%q is not a condition; write @, ! or KIND:VALUE", text)
	}
	switch kind {
	case "rule":
		return rule(value), nil
	case "field":
		return fieldCondition(value)
	}
	wanted, err := template(value)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	unquoted, quoted := unquote(kind)
	switch {
	case kind == "role":
		return role{wanted}, nil
	case quoted:
		return literal{unquoted, kind, wanted}, nil
	case kind == "True", kind == "False", kind == "None", number.MatchString(kind):
		return literal{kind, kind, wanted}, nil
	case claims[kind] != nil:
		return claim{kind, wanted}, nil
	case kind == "http", kind == "https":
		return nil, fmt.Errorf("%q: rules that call an HTTP server are not supported", text)
	}
	return nil, fmt.Errorf(
		"%q refers to the unknown kind %q; the kinds are rule, role, field, literals in quotes and %s",
		text, kind, strings.Join(slices.Sorted(maps.Keys(claims)), ", "),
	)
}

// fieldCondition reads RESOURCE:NAME=VALUE, where the name may contain colons, or RESOURCE:NAME=~EXPRESSION.
// As in Neutron, the regular expression must match the beginning of the attribute's value.
func fieldCondition(text string) (Check, error) {
	resource, condition, _ := strings.Cut(text, ":")
	name, wanted, ok := strings.Cut(condition, "=")
	if !ok || resource == "" || name == "" {
		return nil, fmt.Errorf("\"field:%s\": write field:RESOURCE:ATTRIBUTE=VALUE", text)
	}
	c := field{Resource: resource, Name: name, Wanted: wanted}
	if expression, regular := strings.CutPrefix(wanted, "~"); regular {
		var err error
		if c.Pattern, err = regexp.Compile("^(?:" + expression + ")"); err != nil {
			return nil, fmt.Errorf("\"field:%s\": %w", text, err)
		}
	}
	return c, nil
}

// unquote returns the text between two equal quotes; ok is false if the text is not in quotes.
func unquote(s string) (text string, ok bool) {
	if len(s) < 2 || s[0] != s[len(s)-1] || s[0] != '\'' && s[0] != '"' {
		return "", false
	}
	return s[1 : len(s)-1], true
}

// template reads text with references to the target's values, %(name)s; %% is a percent sign.
func template(text string) (pattern, error) {
	var p pattern
	for text != "" {
		before, after, found := strings.Cut(text, "%")
		if before != "" {
			p = append(p, piece{Text: before})
		}
		if !found {
			break
		}
		if rest, percent := strings.CutPrefix(after, "%"); percent {
			p, text = append(p, piece{Text: "%"}), rest
			continue
		}
		name, rest, closed := strings.Cut(after, ")s")
		if name, text = strings.TrimPrefix(name, "("), rest; !closed || name == "" ||
			!strings.HasPrefix(after, "(") {
			return nil, errors.New("write %(name)s for a value of the target and %% for a percent sign")
		}
		p = append(p, piece{Name: name})
	}
	return p, nil
}
