package placement

import (
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"berth/internal/inventory"
)

// maxQuery is the maximum length of a query string with filters, in bytes, so that one query cannot cause
// unlimited work. A query with 1,000 aggregates, which is the maximum number of values of a parameter, is
// shorter, even with a percent-encoded comma after each aggregate.
const maxQuery = 48 << 10

const invalidQuery = "Invalid query string parameters: "

// badQuery returns the error for an invalid query.
func badQuery(format string, args ...any) error { return fault(http.StatusBadRequest, format, args...) }

// filters returns the query's parameters. If the query is longer than maxQuery, filters returns an error.
func (c *call) filters() (url.Values, error) {
	if len(c.URL.RawQuery) > maxQuery {
		return nil, badQuery("The query is longer than %d bytes.", maxQuery)
	}
	return c.URL.Query(), nil
}

// parseResources parses a list of resource classes with amounts, such as VCPU:2,MEMORY_MB:1024.
func parseResources(value string) (map[string]int64, error) {
	const malformed = "Badly formed resources parameter. Expected resources query string parameter in form: " +
		"?resources=VCPU:2,MEMORY_MB:1024. Got: %s."
	if strings.TrimSpace(value) == "" {
		return nil, badQuery(malformed, "empty string")
	}
	resources := map[string]int64{}
	for part := range strings.SplitSeq(value, ",") {
		class, number, ok := strings.Cut(part, ":")
		if !ok || strings.Contains(number, ":") {
			return nil, badQuery(malformed, part)
		}
		amount, ok := parseAmount(number)
		switch {
		case !ok:
			return nil, badQuery("Requested resource %s expected positive integer amount. Got: %s.",
				class, number)
		case amount < 1:
			return nil, badQuery("Requested resource %s requires amount >= 1. Got: %s.", class, number)
		}
		resources[class] = amount
	}
	return resources, nil
}

// parseAmount reads an integer. For a number outside the range of int64, parseAmount returns the nearest
// int64.
func parseAmount(s string) (int64, bool) {
	s = strings.TrimSpace(s)
	digits := strings.TrimLeft(s, "+-")
	if digits == "" || len(s)-len(digits) > 1 || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	amount, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		amount = math.MaxInt64
		if s[0] == '-' {
			amount = math.MinInt64
		}
	}
	return amount, true
}

// requiredTraits reads the required traits (sets of alternatives) and the forbidden traits. If a query before
// microversion 1.39 contains the parameter required more than once, requiredTraits uses only the last value.
func (c *call) requiredTraits(values []string) (inventory.Rule, error) {
	if c.v < 39 {
		values = values[len(values)-1:]
	}
	var all inventory.Rule
	for _, value := range values {
		rule, err := parseTraits(value, c.v >= 22, c.v >= 39)
		if err != nil {
			return all, err
		}
		all.Required = append(all.Required, rule.Required...)
		all.Forbidden = append(all.Forbidden, rule.Forbidden...)
	}
	return all, nil
}

// parseTraits reads one value of the parameter required: a list of traits, in which a forbidden trait has the
// prefix "!", or a list of alternatives after "in:".
func parseTraits(value string, forbidden, alternatives bool) (inventory.Rule, error) {
	const anyOf = "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' "
	expected := "Expected 'required' parameter value of the form: HW_CPU_X86_VMX,CUSTOM_MAGIC. "
	if forbidden {
		expected = "Expected 'required' parameter value of the form: HW_CPU_X86_VMX,!CUSTOM_MAGIC. "
	}
	list, isAny := strings.CutPrefix(value, "in:")
	switch {
	case isAny && !alternatives:
		return inventory.Rule{}, badQuery(
			invalidQuery+anyOf+"only supported since microversion 1.39. Got: %s",
			value,
		)
	case isAny && strings.Contains(list, "!"):
		return inventory.Rule{}, badQuery(
			invalidQuery+anyOf+"does not support forbidden traits. Got: %s",
			value,
		)
	}
	var rule inventory.Rule
	var names []string
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		name := strings.TrimLeft(item, "!")
		switch {
		case name == "":
			return rule, badQuery(invalidQuery+expected+"Got an empty trait in: %s", value)
		case name == item:
			names = append(names, name)
		case !forbidden:
			return rule, badQuery(invalidQuery+expected+"Got: %s", value)
		default:
			rule.Forbidden = append(rule.Forbidden, name)
		}
	}
	if isAny {
		rule.Required = [][]string{names}
		return rule, nil
	}
	for _, name := range names {
		rule.Required = append(rule.Required, []string{name})
	}
	return rule, nil
}

// memberOf reads the required aggregates (sets of alternatives) and the forbidden aggregates.
func (c *call) memberOf(values []string, suffix string) (inventory.Rule, error) {
	if c.v < 24 && len(values) > 1 {
		return inventory.Rule{}, badQuery("Multiple member_of%s parameters are not supported", suffix)
	}
	var all inventory.Rule
	for _, value := range values {
		aggregates, forbidden, err := parseAggregates(value, suffix, c.v >= 32)
		switch {
		case err != nil:
			return all, err
		case forbidden:
			all.Forbidden = append(all.Forbidden, aggregates...)
		default:
			all.Required = append(all.Required, aggregates)
		}
	}
	return all, nil
}

// parseAggregates reads one value of the parameter member_of: an aggregate, or a list of aggregates after
// "in:". If the value of member_of begins with "!", the aggregates in the value are forbidden.
func parseAggregates(value, suffix string, mayForbid bool) (aggregates []string, forbidden bool, err error) {
	rest, forbidden := strings.CutPrefix(value, "!")
	if forbidden && !mayForbid {
		return nil, false, badQuery(
			"Forbidden member_of%s parameters are not supported in the specified microversion",
			suffix,
		)
	}
	list, several := strings.CutPrefix(rest, "in:")
	if !several && strings.Contains(rest, ",") {
		return nil, false, badQuery(
			"Multiple values for 'member_of%s' must be prefixed with the 'in:' or '!in:' keyword "+
				"using the valid microversion. Got: %s",
			suffix,
			value,
		)
	}
	aggregates = strings.Split(list, ",")
	for _, aggregate := range aggregates {
		if !isUUID(aggregate) {
			return nil, false, badQuery(
				invalidQuery+"Expected 'member_of%s' parameter to contain valid UUID(s). Got: %s",
				suffix,
				aggregate,
			)
		}
	}
	return aggregates, forbidden, nil
}

// filterSchema returns the schema of the query of GET /resource_providers.
func (c *call) filterSchema() *schema {
	anyString := &schema{kind: "string"}
	querySchema := &schema{kind: "object", fields: map[string]*schema{"name": anyString, "uuid": dashedUUID}}
	for name, from := range map[string]int{
		"member_of": 3,
		"resources": 4,
		"in_tree":   14,
		"required":  18,
	} {
		if c.v >= from {
			querySchema.fields[name] = anyString
		}
	}
	if c.v >= 14 {
		querySchema.fields["in_tree"] = dashedUUID
	}
	return querySchema
}

// providerFilter reads the query of GET /resource_providers.
func (c *call) providerFilter() (f inventory.ProviderFilter, err error) {
	values, err := c.filters()
	if err != nil {
		return f, err
	}
	query, err := c.decodeQuery(c.filterSchema())
	if err != nil {
		return f, err
	}
	f = inventory.ProviderFilter{
		Name:   optional(query, "name"),
		UUID:   optional(query, "uuid"),
		InTree: optional(query, "in_tree"),
	}
	if f.Aggregates, err = c.memberOf(values["member_of"], ""); err != nil {
		return f, err
	}
	if optional(query, "resources") != nil {
		if f.Resources, err = parseResources(query["resources"]); err != nil {
			return f, err
		}
	}
	if optional(query, "required") != nil {
		f.Traits, err = c.requiredTraits(values["required"])
	}
	return f, err
}

// unknownNames returns the error for a filter with resource classes or traits that do not exist.
func unknownNames(err error) error {
	err = prefixMessage(err, "Invalid resource class in resources parameter: ", inventory.UnknownClass)
	return prefixMessage(err, `Invalid trait(s) in "required" parameter: `, inventory.Invalid)
}
