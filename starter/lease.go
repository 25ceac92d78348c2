package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// instant reads now, +DURATION from now, or a date in one of the API's forms, which goes there as it is.
func instant(_ context.Context, _ *session, words []string) (any, error) {
	return instantAt(words[0], time.Now())
}

func instantAt(word string, now time.Time) (any, error) {
	after, relative := strings.CutPrefix(word, "+")
	if !relative {
		if word != "now" && (word == "" || word[0] < '0' || word[0] > '9') {
			return nil, usage("%q is not a time such as now, +30s, \"2030-01-31 10:00\" (UTC) or 2030-01-31T10:00:00Z", word)
		}
		return word, nil
	}
	d, err := time.ParseDuration(after)
	if err != nil {
		return nil, usage("%q is not a duration such as +30s or +2h", word)
	}
	return second(now.Add(d)), nil
}

// second writes an instant as the API takes it to the second.
func second(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

func leaseCreate(f *pflag.FlagSet) action {
	given := declare(f, leases.fields, "create")
	least := f.Int("min", 1, "fewest hosts that are enough")
	most := f.Int("max", 0, "most hosts to reserve (default: as --min)")
	hypervisor := f.String("hypervisor-properties", "", `which hosts, as ["=", "$hypervisor_hostname", "cmp-1"]`)
	resource := f.String("resource-properties", "", `which hosts, as ["=", "$rack", "r1"]`)
	return func(ctx context.Context, s *session, args []string) error {
		body, err := given(ctx, s)
		if err != nil {
			return err
		}
		body["name"] = args[0]
		if body["start_date"] == nil {
			body["start_date"] = "now"
		}
		if body["end_date"] == nil {
			return usage("--end is missing")
		}
		if body["reservations"] == nil {
			body["reservations"] = []object{{"resource_type": "physical:host", "min": *least, "max": max(*most, *least),
				"hypervisor_properties": *hypervisor, "resource_properties": *resource}}
		}
		o, err := leases.create(ctx, s, body)
		if err != nil {
			return err
		}
		return s.out.show(o, leases.columns)
	}
}

// hostWrite registers a host (POST) or changes its properties (PUT).
func hostWrite(method string) func(*pflag.FlagSet) action {
	return func(f *pflag.FlagSet) action {
		extras := f.StringArray("property", nil, "NAME=VALUE that leases can ask for; may be repeated")
		return func(ctx context.Context, s *session, args []string) error {
			properties, err := pairs(*extras)
			if err != nil {
				return err
			}
			body := object{}
			for name, value := range properties {
				body[name] = value
			}
			var o object
			if method == "POST" {
				body["name"] = args[0]
				o, err = hosts.create(ctx, s, body)
			} else {
				o, err = hostUpdate(ctx, s, args[0], body)
			}
			if err != nil {
				return err
			}
			return s.out.show(o, hosts.columns)
		}
	}
}

func hostUpdate(ctx context.Context, s *session, word string, body object) (object, error) {
	if len(body) == 0 {
		return nil, fail(exitUsage, "See `starter host set --help`.", "nothing to set")
	}
	id, err := hosts.resolve(ctx, s, word)
	if err != nil {
		return nil, err
	}
	return hosts.update(ctx, s, id, body)
}
