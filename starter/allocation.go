package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

const allocations = "/placement/allocations/"

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
		for _, consumer := range slices.Sorted(maps.Keys(held)) {
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
