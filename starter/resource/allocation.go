package resource

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

// AllocationsPath is the URL path of the allocations of all consumers.
const AllocationsPath = "/placement/allocations/"

const allocationHelp = `Each --allocation names a provider and the resources that the consumer takes from it:

  starter allocation set $SERVER --allocation rp=cmp-1,VCPU=2,MEMORY_MB=512

The new allocations replace all old ones. The write succeeds only if the consumer still has the given generation;
-1 stands for a consumer without allocations.`

func listAllocations(f *pflag.FlagSet) cli.Action {
	return func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := Providers.Resolve(ctx, s, args[0])
		if err != nil {
			return err
		}
		var answer cli.Object
		if err := s.API.Do(ctx, "GET", Providers.ObjectPath(id)+"/allocations", nil, &answer); err != nil {
			return err
		}
		consumers, _ := answer["allocations"].(cli.Object)
		all := []cli.Object{}
		for _, consumer := range slices.Sorted(maps.Keys(consumers)) {
			o, _ := consumers[consumer].(cli.Object)
			all = append(all, cli.Object{
				"consumer":            consumer,
				"resources":           o["resources"],
				"consumer_generation": o["consumer_generation"],
			})
		}
		return s.Output.PrintList(all, []string{"consumer", "consumer_generation", "resources"})
	}
}

// consumerAllocations is the cli.Resource with which commands print the allocations of a consumer. Commands
// use it only for their output.
var consumerAllocations = &cli.Resource{
	Name:    "allocation",
	IDKey:   "consumer",
	NameKey: "consumer",
	Columns: []string{"consumer", "consumer_generation", "consumer_type", "project_id", "user_id"},
}

// ConsumerAllocations reads the allocations of a consumer.
func ConsumerAllocations(ctx context.Context, s *cli.Session, consumer string) (cli.Object, error) {
	if !cli.IsUUID(consumer) {
		return nil, cli.UsageError("consumer %q is not a UUID", consumer)
	}
	var o cli.Object
	if err := s.API.Do(ctx, "GET", AllocationsPath+strings.ToLower(consumer), nil, &o); err != nil {
		return nil, err
	}
	if o == nil {
		o = cli.Object{}
	}
	o["consumer"] = strings.ToLower(consumer)
	return o, nil
}

func showAllocations(f *pflag.FlagSet) cli.Action {
	w := cli.WatchFlags(f)
	return func(ctx context.Context, s *cli.Session, args []string) error {
		return w.Show(ctx, s, consumerAllocations, func(ctx context.Context) (cli.Object, error) {
			return ConsumerAllocations(ctx, s, args[0])
		})
	}
}

func setAllocations(f *pflag.FlagSet) cli.Action {
	words := f.StringArray("allocation", nil, "rp=PROVIDER,CLASS=N,…; may be repeated")
	project := f.String("project", "", "project_id (default: unchanged, or berth for a new consumer)")
	user := f.String("user", "", "user_id (default: unchanged, or starter for a new consumer)")
	kind := f.String("type", "", "consumer_type (default: unchanged, or INSTANCE for a new consumer)")
	generation := generationFlag(f, "the consumer's generation; -1: a new consumer")
	return func(ctx context.Context, s *cli.Session, args []string) error {
		current, err := ConsumerAllocations(ctx, s, args[0])
		if err != nil {
			return err
		}
		allocations, err := parseAllocations(ctx, s, *words)
		if err != nil {
			return err
		}
		body := cli.Object{"allocations": allocations,
			"project_id":          firstSet(*project, current["project_id"], "berth"),
			"user_id":             firstSet(*user, current["user_id"], "starter"),
			"consumer_type":       firstSet(*kind, current["consumer_type"], "INSTANCE"),
			"consumer_generation": generationJSON(generation(cli.Integer(current["consumer_generation"])))}
		if err := s.API.Do(ctx, "PUT", AllocationsPath+args[0], body, nil); err != nil {
			return err
		}
		if current, err = ConsumerAllocations(ctx, s, args[0]); err != nil {
			return err
		}
		return s.Output.PrintObject(current, consumerAllocations.Columns)
	}
}

// parseAllocations converts the values of --allocation to the API's form.
func parseAllocations(ctx context.Context, s *cli.Session, words []string) (cli.Object, error) {
	allocations := cli.Object{}
	for _, word := range words {
		provider, rest, _ := strings.Cut(word, ",")
		name, ok := strings.CutPrefix(provider, "rp=")
		if !ok || rest == "" {
			return nil, cli.UsageError("allocation %q is not rp=PROVIDER,CLASS=N,…", word)
		}
		resources, err := parseAmounts(strings.Split(rest, ","))
		if err != nil {
			return nil, err
		}
		id, err := Providers.Resolve(ctx, s, name)
		if err != nil {
			return nil, err
		}
		if allocations[id] != nil {
			return nil, cli.UsageError("provider %s is given twice", name)
		}
		allocations[id] = cli.Object{"resources": resources}
	}
	if len(allocations) == 0 {
		return nil, cli.Errorf(
			cli.ExitUsage,
			"To delete all allocations: starter allocation unset CONSUMER --yes",
			"--allocation is missing",
		)
	}
	return allocations, nil
}

// unsetAllocations deletes all allocations of a consumer. unsetAllocations requires the flag --yes, because
// other consumers may immediately allocate the released resources.
func unsetAllocations(f *pflag.FlagSet) cli.Action {
	generation := generationFlag(f, "the consumer's generation")
	return cli.RequireYes(f, func(ctx context.Context, s *cli.Session, args []string) error {
		current, err := ConsumerAllocations(ctx, s, args[0])
		if err != nil {
			return err
		}
		if current["consumer_generation"] == nil {
			return cli.Errorf(cli.ExitNotFound, "", "consumer %s has no allocations", args[0])
		}
		body := cli.Object{
			"allocations":         cli.Object{},
			"project_id":          current["project_id"],
			"user_id":             current["user_id"],
			"consumer_type":       current["consumer_type"],
			"consumer_generation": generationJSON(generation(cli.Integer(current["consumer_generation"]))),
		}
		if current["consumer_type"] == "unknown" {
			body["consumer_type"] = "INSTANCE"
		}
		if err := s.API.Do(ctx, "PUT", AllocationsPath+args[0], body, nil); err != nil {
			return err
		}
		return s.Output.PrintMessage(cli.Object{"consumer": args[0], "released": true},
			"the allocations of consumer %s are deleted", args[0])
	})
}

// firstSet returns the value of the flag if the user has given the flag. If the user has not given the flag,
// firstSet returns the current value, or the default value if the current value is "unknown".
func firstSet(flag string, current any, defaultValue string) string {
	if flag != "" {
		return flag
	}
	if word, ok := current.(string); ok && word != "unknown" {
		return word
	}
	return defaultValue
}

// generationJSON returns the JSON of a consumer generation. generationJSON converts a negative generation to
// null, which tells Placement that the consumer is new.
func generationJSON(generation int64) any {
	if generation < 0 {
		return nil
	}
	return generation
}
