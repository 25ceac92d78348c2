package resource

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

// Providers is the cli.Resource for Placement's resource providers.
var Providers = &cli.Resource{
	Name:       "provider",
	Path:       "/placement/resource_providers",
	PluralKey:  "resource_providers",
	IDKey:      "uuid",
	NameKey:    "name",
	NameFilter: "name",
	IsID:       cli.IsUUID,
	Columns:    []string{"uuid", "name", "generation", "parent_provider_uuid"},
	Fields: []cli.Field{
		{
			Flag:    "name",
			Key:     "name",
			Help:    "new name",
			Parse:   cli.Text,
			OnlyFor: "set",
		},
		{
			Flag:    "uuid",
			Key:     "uuid",
			Help:    "UUID of the provider (default: a new one)",
			Parse:   cli.Text,
			OnlyFor: "create",
		},
	},
}

// parseAmounts parses amounts of resource classes of the form CLASS=N.
func parseAmounts(words []string) (cli.Object, error) {
	all, err := cli.ParsePairs(words)
	if err != nil {
		return nil, cli.UsageError("%s is not CLASS=N, for example VCPU=4", strings.Join(words, ","))
	}
	resources := cli.Object{}
	for class, word := range all {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, cli.UsageError("%s=%s: the amount is not a whole number", class, word)
		}
		resources[class] = n
	}
	return resources, nil
}

func showProvider(f *pflag.FlagSet) cli.Action {
	w := cli.WatchFlags(f)
	return func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := Providers.Resolve(ctx, s, args[0])
		if err != nil {
			return err
		}
		return w.Show(ctx, s, Providers, func(ctx context.Context) (cli.Object, error) {
			o, err := Providers.Get(ctx, s, id)
			if err != nil {
				return nil, err
			}
			delete(o, "links")
			for _, part := range []string{"inventories", "usages", "traits", "aggregates"} {
				var more cli.Object
				if err := s.API.Do(ctx, "GET", Providers.ObjectPath(id)+"/"+part, nil, &more); err != nil &&
					!cli.IsStatus(err, http.StatusNotFound) {
					return nil, err
				}
				if more != nil {
					o[part] = more[part]
				}
			}
			return o, nil
		})
	}
}

func createProvider(f *pflag.FlagSet) cli.Action {
	given := cli.DeclareFields(f, Providers.Fields, "create")
	parent := f.String("parent", "", "parent provider, by name or UUID")
	resources := f.StringArray("resource", nil,
		"inventory as CLASS=TOTAL, for example VCPU=16; may be repeated")
	return func(ctx context.Context, s *cli.Session, args []string) error {
		body, err := given(ctx, s)
		if err != nil {
			return err
		}
		inventory, err := parseAmounts(*resources)
		if err != nil {
			return err
		}
		body["name"] = args[0]
		if *parent != "" {
			if body["parent_provider_uuid"], err = Providers.Resolve(ctx, s, *parent); err != nil {
				return err
			}
		}
		o, err := Providers.Create(ctx, s, body)
		if err != nil {
			return err
		}
		if len(inventory) > 0 {
			if err := SetInventories(ctx, s, fmt.Sprint(o["uuid"]), cli.Integer(o["generation"]), inventory); err != nil {
				return fmt.Errorf("provider %s was created, but its inventory was not: %w", o["uuid"], err)
			}
			if o, err = Providers.Get(ctx, s, fmt.Sprint(o["uuid"])); err != nil {
				return err
			}
		}
		return s.Output.PrintObject(o, Providers.Columns)
	}
}

// SetInventories replaces the inventories of a provider.
func SetInventories(
	ctx context.Context,
	s *cli.Session,
	id string,
	generation int64,
	totals cli.Object,
) error {
	inventories := cli.Object{}
	for class, total := range totals {
		inventories[class] = cli.Object{"total": total}
	}
	return s.API.Do(ctx, "PUT", Providers.ObjectPath(id)+"/inventories",
		cli.Object{"resource_provider_generation": generation, "inventories": inventories}, nil)
}

func setProvider(f *pflag.FlagSet) cli.Action {
	name := f.String("name", "", "new name")
	resources := f.StringArray("resource", nil,
		"inventory as CLASS=TOTAL; may be repeated; replaces all inventories")
	generation := generationFlag(f, "the provider's generation")
	return func(ctx context.Context, s *cli.Session, args []string) error {
		totals, err := parseAmounts(*resources)
		if err != nil {
			return err
		}
		if *name == "" && len(totals) == 0 {
			return cli.Errorf(cli.ExitUsage, "See `starter provider set --help`.", "nothing to set")
		}
		id, err := Providers.Resolve(ctx, s, args[0])
		if err != nil {
			return err
		}
		o, err := Providers.Get(ctx, s, id)
		if err != nil {
			return err
		}
		if len(totals) > 0 {
			if err := SetInventories(ctx, s, id, generation(cli.Integer(o["generation"])), totals); err != nil {
				return err
			}
		}
		if *name != "" {
			if _, err := Providers.Update(ctx, s, id, cli.Object{"name": *name}); err != nil {
				return err
			}
		}
		if o, err = Providers.Get(ctx, s, id); err != nil {
			return err
		}
		return s.Output.PrintObject(o, Providers.Columns)
	}
}

// generationFlag declares --generation. Without the flag --generation, the command sends the generation that
// it has just read, so the write fails only if another client changes the object after this read.
func generationFlag(f *pflag.FlagSet, what string) func(read int64) int64 {
	given := f.Int64("generation", 0, "write only if this is still "+what+" (default: the current one)")
	return func(read int64) int64 {
		if f.Changed("generation") {
			return *given
		}
		return read
	}
}
