package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// amounts reads CLASS=N words.
func amounts(words []string) (object, error) {
	all, err := pairs(words)
	if err != nil {
		return nil, usage("%s is not CLASS=N, as VCPU=4", strings.Join(words, ","))
	}
	resources := object{}
	for class, word := range all {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, usage("%s=%s: the amount is not a whole number", class, word)
		}
		resources[class] = n
	}
	return resources, nil
}

func providerShow(f *pflag.FlagSet) action {
	w := watching(f)
	return func(ctx context.Context, s *session, args []string) error {
		id, err := providers.resolve(ctx, s, args[0])
		if err != nil {
			return err
		}
		return w.show(ctx, s, providers, func(ctx context.Context) (object, error) {
			o, err := providers.get(ctx, s, id)
			if err != nil {
				return nil, err
			}
			delete(o, "links")
			for _, part := range []string{"inventories", "usages", "traits", "aggregates"} {
				var more object
				if err := s.api.do(ctx, "GET", providers.at(id)+"/"+part, nil, &more); err != nil && !refused(err, http.StatusNotFound) {
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

func providerCreate(f *pflag.FlagSet) action {
	given := declare(f, providers.fields, "create")
	parent := f.String("parent", "", "parent provider, by name or UUID")
	resources := f.StringArray("resource", nil, "CLASS=TOTAL of its inventory, as VCPU=16; may be repeated")
	return func(ctx context.Context, s *session, args []string) error {
		body, err := given(ctx, s)
		if err != nil {
			return err
		}
		inventory, err := amounts(*resources)
		if err != nil {
			return err
		}
		body["name"] = args[0]
		if *parent != "" {
			if body["parent_provider_uuid"], err = providers.resolve(ctx, s, *parent); err != nil {
				return err
			}
		}
		o, err := providers.create(ctx, s, body)
		if err != nil {
			return err
		}
		if len(inventory) > 0 {
			if err := stock(ctx, s, fmt.Sprint(o["uuid"]), integer(o["generation"]), inventory); err != nil {
				return fmt.Errorf("provider %s is created, but its inventory is not: %w", o["uuid"], err)
			}
			if o, err = providers.get(ctx, s, fmt.Sprint(o["uuid"])); err != nil {
				return err
			}
		}
		return s.out.show(o, providers.columns)
	}
}

// stock replaces a provider's inventories.
func stock(ctx context.Context, s *session, id string, generation int64, totals object) error {
	inventories := object{}
	for class, total := range totals {
		inventories[class] = object{"total": total}
	}
	return s.api.do(ctx, "PUT", providers.at(id)+"/inventories", object{"resource_provider_generation": generation, "inventories": inventories}, nil)
}

func providerSet(f *pflag.FlagSet) action {
	name := f.String("name", "", "new name")
	resources := f.StringArray("resource", nil, "CLASS=TOTAL; together they replace all inventories")
	generation := generationFlag(f, "the provider's generation")
	return func(ctx context.Context, s *session, args []string) error {
		totals, err := amounts(*resources)
		if err != nil {
			return err
		}
		if *name == "" && len(totals) == 0 {
			return fail(exitUsage, "See `starter provider set --help`.", "nothing to set")
		}
		id, err := providers.resolve(ctx, s, args[0])
		if err != nil {
			return err
		}
		o, err := providers.get(ctx, s, id)
		if err != nil {
			return err
		}
		if len(totals) > 0 {
			if err := stock(ctx, s, id, generation(integer(o["generation"])), totals); err != nil {
				return err
			}
		}
		if *name != "" {
			if _, err := providers.update(ctx, s, id, object{"name": *name}); err != nil {
				return err
			}
		}
		if o, err = providers.get(ctx, s, id); err != nil {
			return err
		}
		return s.out.show(o, providers.columns)
	}
}

// generationFlag is --generation; without it the generation just read is used, so that only writers between
// the read and the write are noticed.
func generationFlag(f *pflag.FlagSet, what string) func(read int64) int64 {
	given := f.Int64("generation", 0, "only if this is still "+what+" (default: as it is read now)")
	return func(read int64) int64 {
		if f.Changed("generation") {
			return *given
		}
		return read
	}
}
