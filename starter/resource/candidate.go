package resource

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

const explainCandidatesHelp = `QUERY is the query of GET /placement/allocation_candidates at the newest microversion, for example the one in the log of
nova-scheduler: 'resources=VCPU:4,MEMORY_MB:8192&required=HW_CPU_X86_AVX'.

Each line says how many providers and provider trees one filter removed, with an example. The filters of a group apply in
the order of the lines: in_tree, inventory, capacity, required, forbidden, member_of. The lines of the group "trees" are
the filters on whole trees: root_required, groups (a group has no provider), required, group_policy, same_subtree,
together (each group finds providers, but not all groups at the same time). The line "left" counts the providers and
trees that no filter removed.`

func explainCandidates(*pflag.FlagSet) cli.Action {
	return func(ctx context.Context, s *cli.Session, args []string) error {
		text := args[0][strings.Index(args[0], "?")+1:]
		query, err := url.ParseQuery(text)
		if err != nil || text == "" {
			return cli.UsageError("%q is not a query such as resources=VCPU:1", args[0])
		}
		var o cli.Object
		if err := s.API.Do(ctx, "GET", "/operator/v1/candidates/explain?"+query.Encode(), nil, &o); err != nil {
			return err
		}
		if s.Output.Format != "table" {
			return s.Output.PrintDocument(o)
		}
		if err := s.Output.PrintList(explanationRows(o), []string{"group", "resources", "filter", "providers", "trees", "example"}); err != nil {
			return err
		}
		return s.Output.PrintMessage(o, "%s", candidatesSentence(o))
	}
}

// explanationRows returns one row for each filter that removed providers or trees,
// and for each group one row with the number of providers or trees that are left.
func explanationRows(o cli.Object) (rows []cli.Object) {
	add := func(group, resources string, filters any) {
		all, _ := cli.Objects(filters)
		for _, f := range all {
			if cli.Integer(f["providers"])+cli.Integer(f["trees"]) == 0 {
				continue
			}
			row := cli.Object{
				"group":     group,
				"resources": resources,
				"filter":    f["filter"],
				"providers": f["providers"],
				"trees":     f["trees"],
			}
			if examples, _ := cli.Objects(f["examples"]); len(examples) > 0 {
				row["example"] = fmt.Sprintf("%v %v", examples[0]["name"], examples[0]["reason"])
			}
			rows = append(rows, row)
		}
	}
	groups, _ := cli.Objects(o["groups"])
	for _, g := range groups {
		name, resources := fmt.Sprint(g["suffix"]), resourceList(g["resources"])
		add(name, resources, g["filters"])
		rows = append(rows, cli.Object{
			"group":     name,
			"resources": resources,
			"filter":    "left",
			"providers": g["providers_left"],
			"trees":     g["trees_left"],
		})
	}
	add("trees", "", o["trees"])
	return rows
}

// resourceList writes amounts by resource class as Placement's query does, for example MEMORY_MB:512,VCPU:1.
func resourceList(v any) string {
	amounts, _ := v.(cli.Object)
	var all []string
	for _, class := range slices.Sorted(maps.Keys(amounts)) {
		all = append(all, fmt.Sprintf("%s:%v", class, amounts[class]))
	}
	return strings.Join(all, ",")
}

// candidatesSentence says how many providers and trees the API has examined, and whether the list of
// candidates is cut.
func candidatesSentence(o cli.Object) string {
	examined, _ := o["examined"].(cli.Object)
	candidates, _ := o["candidates"].(cli.Object)
	sentence := fmt.Sprintf("%v providers in %v trees were examined",
		examined["providers"], examined["trees"])
	if examined["cut"] == true {
		sentence += ", and there are more"
	}
	sentence += fmt.Sprintf("; %v of these trees have candidates; the query returns %v candidates",
		candidates["trees"], candidates["returned"])
	if candidates["limit"] != nil {
		sentence += fmt.Sprintf(" with limit %v", candidates["limit"])
	}
	if candidates["cut"] == true {
		sentence += ", and there are more"
	}
	return sentence
}
