package resource

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

const listPolicyHelp = `Lists the rules that decide who may do what: the defaults, and the rules of the policy file of the process that answers.
docs/policy.md has all default rules.`

const checkPolicyHelp = `Decides RULE with the rules in force, and shows the result of each condition. The caller is the owner of --subject-token, or has the
values of --roles, --project and --user. The command only asks; it performs no operation. Its exit code is 0 whether the rule allows or not.
An attribute without --target is missing, and a condition on a missing attribute is false.`

func listPolicy(f *pflag.FlagSet) cli.Action {
	api := f.String("api", "", "list only the rules of this API, for example placement")
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		var answer struct{ Rules []cli.Object }
		if err := s.API.Do(ctx, http.MethodGet, "/operator/v1/policy/rules", nil, &answer); err != nil {
			return err
		}
		rules, apis := []cli.Object{}, map[string]bool{}
		for _, rule := range answer.Rules {
			apis[fmt.Sprint(rule["api"])] = true
			if *api == "" || rule["api"] == *api {
				rules = append(rules, rule)
			}
		}
		if *api != "" && !apis[*api] {
			return cli.UsageError("no API is named %q; use one of %s", *api,
				strings.Join(slices.Sorted(maps.Keys(apis)), ", "))
		}
		return s.Output.PrintList(rules, []string{"api", "name", "check", "from_file"})
	}
}

// explanation is a condition of a rule with its result.
type explanation struct {
	Check   string        `json:"check"`
	Allowed bool          `json:"allowed"`
	Reason  string        `json:"reason,omitempty"`
	Parts   []explanation `json:"parts,omitempty"`
}

func checkPolicy(f *pflag.FlagSet) cli.Action {
	api := f.String("api", "placement", "the API that has the rule")
	token := f.String("subject-token", "", "decide for the owner of this token")
	user := f.String("user", "", "ID of the caller's user")
	project := f.String("project", "", "ID of the project of the caller's token")
	roles := f.StringSlice("roles", nil, "roles of the caller, separated by commas")
	system := f.Bool("system", false, "the caller's token has the scope system")
	attributes := f.StringArray("target", nil,
		"NAME=VALUE: an attribute of the object that the operation changes or reads, repeatable")
	return func(ctx context.Context, s *cli.Session, args []string) error {
		target, err := cli.ParsePairs(*attributes)
		if err != nil {
			return err
		}
		question := cli.Object{
			"api":     *api,
			"rule":    args[0],
			"target":  target,
			"token":   *token,
			"user":    *user,
			"project": *project,
			"roles":   *roles,
			"system":  *system,
		}
		var answer struct {
			API         string      `json:"api"`
			Rule        string      `json:"rule"`
			Allowed     bool        `json:"allowed"`
			Caller      cli.Object  `json:"caller"`
			Explanation explanation `json:"explanation"`
		}
		if err := s.API.Do(ctx, http.MethodPost, "/operator/v1/policy/check", question, &answer); err != nil {
			return err
		}
		if s.Output.Format != "table" {
			return s.Output.PrintDocument(answer)
		}
		decision := cli.Sanitize(fmt.Sprintf("%s %s", verdict(answer.Allowed), answer.Rule))
		_, err = io.WriteString(s.Output.Writer, decision+"\n"+answer.Explanation.lines("  "))
		return err
	}
}

func verdict(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "denied "
}

// lines returns one line for the condition and one line for each of its parts, each part indented below the
// condition.
func (e explanation) lines(indent string) string {
	var b strings.Builder
	text := verdict(e.Allowed) + " " + e.Check
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	b.WriteString(indent + cli.Sanitize(text) + "\n")
	for _, part := range e.Parts {
		b.WriteString(part.lines(indent + "  "))
	}
	return b.String()
}
