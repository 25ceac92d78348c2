package placement

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"berth/internal/api/osapi"
	"berth/internal/inventory"
)

// Codes of query errors from microversion 1.23 on.
const (
	queryDuplicateKey = "placement.query.duplicate_key"
	queryBadValue     = "placement.query.bad_value"
	queryMissingValue = "placement.query.missing_value"
)

// maxGroups is the maximum number of groups in a query. maxGroups is necessary because the memory of a search
// grows with the number of groups in the query and the number of providers.
const maxGroups = 128

// groupParameters contains the query parameters that may have a group suffix, with the first microversion of
// each parameter. The parameters stand in the order in which error messages list them.
var groupParameters = []struct {
	name string
	from int
}{{"in_tree", 31}, {"member_of", 21}, {"required", 17}, {"resources", 10}}

var (
	numberedGroup = regexp.MustCompile(`^([1-9][0-9]*)?$`)
	namedGroup    = regexp.MustCompile(`^([a-zA-Z0-9_-]{1,64})?$`)
	limitForm     = &schema{kind: "string", pattern: regexp.MustCompile(`^[1-9][0-9]*$`)}
)

// candidateQuery reads the query of GET /allocation_candidates.
func (c *call) candidateQuery() (q inventory.CandidateQuery, err error) {
	values, err := c.filters()
	if err != nil {
		return q, err
	}
	suffixes, err := c.checkCandidateParameters(values)
	if err != nil {
		return q, err
	}
	if q, err = c.readGlobalParameters(values); err != nil {
		return q, err
	}
	if len(suffixes) > maxGroups {
		return q, badQuery("No more than %d request groups are supported.", maxGroups)
	}
	for _, suffix := range suffixes {
		group, err := c.readGroup(values, suffix)
		if err != nil {
			return q, err
		}
		q.Groups = append(q.Groups, group)
	}
	if err := c.checkGroups(q); err != nil {
		return q, err
	}
	named := slices.DeleteFunc(slices.Clone(suffixes), func(suffix string) bool { return suffix == "" })
	if len(named) > 1 && !values.Has("group_policy") {
		return q, badQuery(
			`The "group_policy" parameter is required when specifying more than one "resources{N}" parameter.`,
		)
	}
	return q, nil
}

// checkCandidateParameters checks the names of the parameters, as the schema that Placement has for the
// microversion does. It returns the suffixes of the groups.
func (c *call) checkCandidateParameters(values url.Values) (suffixes []string, err error) {
	known := map[string]int{
		"limit":         16,
		"group_policy":  25,
		"root_required": 35,
		"same_subtree":  36,
	}
	found := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if from, ok := known[name]; ok && c.v >= from {
			continue
		}
		suffix, ok := c.groupSuffix(name)
		if !ok {
			return nil, c.unexpected(name)
		}
		found[suffix] = true
	}
	if c.v < 25 && !values.Has("resources") {
		return nil, badQuery(
			invalidQuery + "'resources' is a required property Failed validating 'required' in schema",
		)
	}
	for _, limit := range values["limit"] {
		if m := limitForm.check(limit).below("properties", "limit"); m != nil {
			return nil, badQuery(invalidQuery+"%s", m)
		}
	}
	for _, policy := range values["group_policy"] {
		if policy != "none" && policy != "isolate" {
			return nil, badQuery(
				invalidQuery+"%s is not one of ['none', 'isolate'] Failed validating 'enum' in schema"+
					"['properties']['group_policy']",
				repr(policy),
			)
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// groupSuffix returns the suffix of a group parameter. For a parameter that is not a group parameter, the
// result `ok` is false.
func (c *call) groupSuffix(name string) (suffix string, ok bool) {
	for _, p := range groupParameters {
		suffix, ok := strings.CutPrefix(name, p.name)
		switch {
		case !ok || c.v < p.from:
		case c.v < 25:
			return "", suffix == ""
		case c.v < 33:
			return suffix, numberedGroup.MatchString(suffix)
		default:
			return suffix, namedGroup.MatchString(suffix)
		}
	}
	return "", false
}

// unexpected returns the error for a parameter that the microversion does not have.
func (c *call) unexpected(name string) error {
	if c.v < 25 {
		return badQuery(invalidQuery+"Additional properties are not allowed (%s was unexpected) "+
			"Failed validating 'additionalProperties' in schema", repr(name))
	}
	suffixPattern := `([1-9][0-9]*)?`
	if c.v >= 33 {
		suffixPattern = `([a-zA-Z0-9_-]{1,64})?`
	}
	var forms []string
	for _, p := range groupParameters {
		if c.v >= p.from {
			forms = append(forms, "'^"+p.name+suffixPattern+"$'")
		}
	}
	return badQuery(
		invalidQuery+"%s does not match any of the regexes: %s Failed validating 'additionalProperties' in schema",
		repr(name),
		strings.Join(forms, ", "),
	)
}

// readGlobalParameters reads the parameters that apply to all groups. If the query contains the parameter
// limit or group_policy more than once, berth uses the first value, as Placement does.
func (c *call) readGlobalParameters(values url.Values) (q inventory.CandidateQuery, err error) {
	q = inventory.CandidateQuery{
		SingleProviders:    c.v < 29,
		AllClasses:         c.v >= 27,
		WithTraits:         c.v >= 17,
		GroupPolicyIsolate: values.Get("group_policy") == "isolate",
	}
	if values.Has("limit") {
		if q.Limits.Candidates, err = strconv.Atoi(values.Get("limit")); err != nil {
			q.Limits.Candidates = 0 // a limit that does not fit into an int means no limit
		}
	}
	if roots := values["root_required"]; len(roots) > 1 {
		return q, osapi.Fault(http.StatusBadRequest, queryDuplicateKey,
			"Query parameter 'root_required' may be specified only once.")
	} else if len(roots) == 1 {
		if q.RootTraits, err = parseTraits(roots[0], true, false); err != nil {
			return q, err
		}
		if conflicting := conflictingTraits(q.RootTraits); len(conflicting) > 0 {
			return q, osapi.Fault(http.StatusBadRequest, queryBadValue,
				"Conflicting required and forbidden traits found in root_required: %s", strings.Join(conflicting, ", "))
		}
	}
	for _, value := range values["same_subtree"] {
		var suffixes []string
		for suffix := range strings.SplitSeq(value, ",") {
			if suffix = strings.TrimSpace(suffix); suffix == "" {
				return q, osapi.Fault(http.StatusBadRequest, queryBadValue,
					"Empty string (unsuffixed group) can not be specified in `same_subtree`")
			}
			suffixes = append(suffixes, suffix)
		}
		q.SameSubtrees = append(q.SameSubtrees, suffixes)
	}
	return q, nil
}

// conflictingTraits returns the required traits that no provider can have, because all their alternatives are
// forbidden.
func conflictingTraits(r inventory.Rule) []string {
	var conflicting []string
	allowed := func(name string) bool { return !slices.Contains(r.Forbidden, name) }
	for _, alternatives := range r.Required {
		if !slices.ContainsFunc(alternatives, allowed) {
			conflicting = append(conflicting, alternatives...)
		}
	}
	slices.Sort(conflicting)
	return slices.Compact(conflicting)
}

// readGroup reads the parameters of the group with the given suffix.
func (c *call) readGroup(values url.Values, suffix string) (g inventory.Group, err error) {
	g.Suffix = suffix
	// the last one counts, but Placement refuses a query with any malformed one
	for _, resources := range values["resources"+suffix] {
		if g.Resources, err = parseResources(resources); err != nil {
			return g, err
		}
	}
	if required := values["required"+suffix]; len(required) > 0 {
		if g.Traits, err = c.requiredTraits(required); err != nil {
			return g, err
		}
	}
	if g.Aggregates, err = c.memberOf(values["member_of"+suffix], suffix); err != nil {
		return g, err
	}
	for _, tree := range values["in_tree"+suffix] {
		if g.InTree = strings.TrimSpace(tree); !isUUID(g.InTree) {
			return g, badQuery(
				invalidQuery+"Expected 'in_tree' parameter to be a format of uuid. Got: %s",
				g.InTree,
			)
		}
	}
	return g, nil
}

// checkGroups checks the groups of a query after all groups have been read.
func (c *call) checkGroups(q inventory.CandidateQuery) error {
	err := checkSubtrees(q)
	if c.v < 36 {
		err = refuseGroupsWithoutResources(q.Groups)
	}
	if err != nil {
		return err
	}
	var found []string
	for _, g := range q.Groups {
		if conflicting := conflictingTraits(g.Traits); len(conflicting) > 0 {
			found = append(found, fmt.Sprintf("required%s: (%s)", g.Suffix, strings.Join(conflicting, ", ")))
		}
	}
	if len(found) > 0 {
		return badQuery(
			"Conflicting required and forbidden traits found in the following traits keys: %s",
			strings.Join(found, ", "),
		)
	}
	return nil
}

// refuseGroupsWithoutResources returns an error if the query has no group, or if a group has no resources.
// Microversions before 1.36 require resources in each group.
func refuseGroupsWithoutResources(groups []inventory.Group) error {
	var traits, aggregates []string
	empty := false
	for _, g := range groups {
		if len(g.Resources) > 0 {
			continue
		}
		empty = true
		if !g.Traits.IsEmpty() {
			traits = append(traits, "required"+g.Suffix)
		}
		if !g.Aggregates.IsEmpty() {
			aggregates = append(aggregates, "member_of"+g.Suffix)
		}
	}
	switch {
	case len(groups) == 0:
		return badQuery("At least one request group (`resources` or `resources{$S}`) is required.")
	case len(traits) > 0:
		return badQuery(
			"All traits parameters must be associated with resources.  Found the following orphaned traits keys: %s",
			strings.Join(traits, ", "),
		)
	case len(aggregates) > 0:
		return badQuery(
			"All member_of parameters must be associated with resources. Found the following orphaned member_of keys: %s",
			strings.Join(aggregates, ", "),
		)
	case empty:
		return badQuery("All request groups must specify resources.")
	}
	return nil
}

// checkSubtrees checks three rules that apply since microversion 1.36: at least one group has resources, only
// groups in same_subtree may lack resources, and same_subtree names only existing groups.
func checkSubtrees(q inventory.CandidateQuery) error {
	var empty, unknown []any
	some := false
	groups := map[string]bool{}
	for _, g := range q.Groups {
		groups[g.Suffix] = true
		some = some || len(g.Resources) > 0
		named := slices.ContainsFunc(q.SameSubtrees,
			func(suffixes []string) bool { return slices.Contains(suffixes, g.Suffix) })
		if len(g.Resources) == 0 && !named {
			empty = append(empty, g.Suffix)
		}
	}
	for _, suffix := range slices.Concat(q.SameSubtrees...) {
		if !groups[suffix] {
			unknown = append(unknown, suffix)
		}
	}
	switch {
	case !some:
		return osapi.Fault(http.StatusBadRequest, queryMissingValue,
			"There must be at least one resources or resources[$S] parameter.")
	case len(empty) > 0:
		return osapi.Fault(
			http.StatusBadRequest,
			queryBadValue,
			"Resourceless suffixed group request should be specified in "+
				"`same_subtree` query param: bad group(s) - %s",
			repr(empty),
		)
	case len(unknown) > 0:
		return osapi.Fault(http.StatusBadRequest, queryBadValue,
			"Real suffixes should be specified in `same_subtree`: %s", repr(unknown))
	}
	return nil
}
