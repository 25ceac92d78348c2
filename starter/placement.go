package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

const allocations = "/placement/allocations/"

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

const allocationHelp = `Each --allocation names a provider and what the consumer takes of it:

  starter allocation set $SERVER --allocation rp=cmp-1,VCPU=2,MEMORY_MB=512

All that the consumer held before is replaced. The write succeeds only if the consumer's generation is still the
one given; -1 stands for a consumer that has nothing yet.`

func allocationList(f *pflag.FlagSet) action {
	return func(ctx context.Context, s *session, args []string) error {
		id, err := providers.resolve(ctx, s, args[0])
		if err != nil {
			return err
		}
		var answer object
		if err := s.api.do(ctx, "GET", providers.at(id)+"/allocations", nil, &answer); err != nil {
			return err
		}
		held, _ := answer["allocations"].(object)
		all := []object{}
		for _, consumer := range sorted(held) {
			o, _ := held[consumer].(object)
			all = append(all, object{"consumer": consumer, "resources": o["resources"], "consumer_generation": o["consumer_generation"]})
		}
		return s.out.list(all, []string{"consumer", "consumer_generation", "resources"})
	}
}

var held = &noun{name: "allocation", id: "consumer", label: "consumer",
	columns: []string{"consumer", "consumer_generation", "consumer_type", "project_id", "user_id"}}

// holding reads what a consumer holds.
func holding(ctx context.Context, s *session, consumer string) (object, error) {
	if !isUUID(consumer) {
		return nil, usage("consumer %q is not a UUID", consumer)
	}
	var o object
	if err := s.api.do(ctx, "GET", allocations+strings.ToLower(consumer), nil, &o); err != nil {
		return nil, err
	}
	if o == nil {
		o = object{}
	}
	o["consumer"] = strings.ToLower(consumer)
	return o, nil
}

func allocationShow(f *pflag.FlagSet) action {
	w := watching(f)
	return func(ctx context.Context, s *session, args []string) error {
		return w.show(ctx, s, held, func(ctx context.Context) (object, error) { return holding(ctx, s, args[0]) })
	}
}

func allocationSet(f *pflag.FlagSet) action {
	wanted := f.StringArray("allocation", nil, "rp=PROVIDER,CLASS=N,…; may be repeated")
	project := f.String("project", "", "project_id (default: as it is, else berth)")
	user := f.String("user", "", "user_id (default: as it is, else starter)")
	kind := f.String("type", "", "consumer_type (default: as it is, else INSTANCE)")
	generation := generationFlag(f, "the consumer's generation; -1: it has none")
	return func(ctx context.Context, s *session, args []string) error {
		now, err := holding(ctx, s, args[0])
		if err != nil {
			return err
		}
		claims, err := claimed(ctx, s, *wanted)
		if err != nil {
			return err
		}
		body := object{"allocations": claims,
			"project_id":          either(*project, now["project_id"], "berth"),
			"user_id":             either(*user, now["user_id"], "starter"),
			"consumer_type":       either(*kind, now["consumer_type"], "INSTANCE"),
			"consumer_generation": null(generation(integer(now["consumer_generation"])))}
		if err := s.api.do(ctx, "PUT", allocations+args[0], body, nil); err != nil {
			return err
		}
		if now, err = holding(ctx, s, args[0]); err != nil {
			return err
		}
		return s.out.show(now, held.columns)
	}
}

// claimed reads the --allocation words into the API's form.
func claimed(ctx context.Context, s *session, words []string) (object, error) {
	claims := object{}
	for _, word := range words {
		provider, rest, _ := strings.Cut(word, ",")
		name, ok := strings.CutPrefix(provider, "rp=")
		if !ok || rest == "" {
			return nil, usage("allocation %q is not rp=PROVIDER,CLASS=N,…", word)
		}
		resources, err := amounts(strings.Split(rest, ","))
		if err != nil {
			return nil, err
		}
		id, err := providers.resolve(ctx, s, name)
		if err != nil {
			return nil, err
		}
		if claims[id] != nil {
			return nil, usage("provider %s is named twice", name)
		}
		claims[id] = object{"resources": resources}
	}
	if len(claims) == 0 {
		return nil, fail(exitUsage, "To release everything: starter allocation unset CONSUMER --yes", "--allocation is missing")
	}
	return claims, nil
}

// allocationUnset is final: what is released may be taken by somebody else at once.
func allocationUnset(f *pflag.FlagSet) action {
	generation := generationFlag(f, "the consumer's generation")
	return final(f, func(ctx context.Context, s *session, args []string) error {
		now, err := holding(ctx, s, args[0])
		if err != nil {
			return err
		}
		if now["consumer_generation"] == nil {
			return fail(exitNotFound, "", "consumer %s holds nothing", args[0])
		}
		body := object{"allocations": object{}, "project_id": now["project_id"], "user_id": now["user_id"],
			"consumer_type": now["consumer_type"], "consumer_generation": null(generation(integer(now["consumer_generation"])))}
		if now["consumer_type"] == "unknown" {
			body["consumer_type"] = "INSTANCE"
		}
		if err := s.api.do(ctx, "PUT", allocations+args[0], body, nil); err != nil {
			return err
		}
		return s.out.say(object{"consumer": args[0], "released": true}, "consumer %s holds nothing any more", args[0])
	})
}

func aggregateShow(f *pflag.FlagSet) action {
	return func(ctx context.Context, s *session, args []string) error {
		id, err := providers.resolve(ctx, s, args[0])
		if err != nil {
			return err
		}
		o, err := aggregatesOf(ctx, s, id)
		if err != nil {
			return err
		}
		return s.out.show(o, []string{"provider", "resource_provider_generation", "aggregates"})
	}
}

func aggregatesOf(ctx context.Context, s *session, provider string) (object, error) {
	var o object
	if err := s.api.do(ctx, "GET", providers.at(provider)+"/aggregates", nil, &o); err != nil {
		return nil, err
	}
	o["provider"] = provider
	return o, nil
}

func aggregateSet(f *pflag.FlagSet) action {
	generation := generationFlag(f, "the provider's generation")
	return func(ctx context.Context, s *session, args []string) error {
		id, err := providers.resolve(ctx, s, args[0])
		if err != nil {
			return err
		}
		now, err := aggregatesOf(ctx, s, id)
		if err != nil {
			return err
		}
		body := object{"aggregates": args[1:], "resource_provider_generation": generation(integer(now["resource_provider_generation"]))}
		var o object
		if err := s.api.do(ctx, "PUT", providers.at(id)+"/aggregates", body, &o); err != nil {
			return err
		}
		o["provider"] = id
		return s.out.show(o, []string{"provider", "resource_provider_generation", "aggregates"})
	}
}

// either is the flag's word, else what is there, else the default.
func either(flag string, now any, otherwise string) string {
	if flag != "" {
		return flag
	}
	if word, ok := now.(string); ok && word != "unknown" {
		return word
	}
	return otherwise
}

// null is the JSON of a consumer's generation: below zero stands for none.
func null(generation int64) any {
	if generation < 0 {
		return nil
	}
	return generation
}

func sorted(o object) []string { return slices.Sorted(maps.Keys(o)) }
