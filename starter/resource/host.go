package resource

import (
	"context"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

// Hosts is the cli.Resource for the hosts that Blazar can reserve.
var Hosts = &cli.Resource{
	Name:           "host",
	Path:           "/reservation/v1/os-hosts",
	SingularKey:    "host",
	PluralKey:      "hosts",
	IDKey:          "id",
	NameKey:        "hypervisor_hostname",
	IsID:           cli.Digits.MatchString,
	IgnoresFilters: true,
	Columns: []string{
		"id",
		"hypervisor_hostname",
		"reservable",
		"vcpus",
		"memory_mb",
		"local_gb",
		"berth:quarantine",
	},
}

// hostCommand makes the command that registers a host (POST) or the command that changes the properties of a
// host (PUT).
func hostCommand(method string) func(*pflag.FlagSet) cli.Action {
	return func(f *pflag.FlagSet) cli.Action {
		extras := f.StringArray("property", nil,
			"NAME=VALUE that resource_properties of leases can match; may be repeated")
		return func(ctx context.Context, s *cli.Session, args []string) error {
			properties, err := cli.ParsePairs(*extras)
			if err != nil {
				return err
			}
			body := cli.Object{}
			for name, value := range properties {
				body[name] = value
			}
			var o cli.Object
			if method == "POST" {
				body["name"] = args[0]
				o, err = Hosts.Create(ctx, s, body)
			} else {
				o, err = updateHost(ctx, s, args[0], body)
			}
			if err != nil {
				return err
			}
			return s.Output.PrintObject(o, Hosts.Columns)
		}
	}
}

func updateHost(ctx context.Context, s *cli.Session, word string, body cli.Object) (cli.Object, error) {
	if len(body) == 0 {
		return nil, cli.Errorf(cli.ExitUsage, "See `starter host set --help`.", "nothing to set")
	}
	id, err := Hosts.Resolve(ctx, s, word)
	if err != nil {
		return nil, err
	}
	return Hosts.Update(ctx, s, id, body)
}
