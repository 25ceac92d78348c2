package resource

import (
	"context"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

func showAggregates(f *pflag.FlagSet) cli.Action {
	return func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := Providers.Resolve(ctx, s, args[0])
		if err != nil {
			return err
		}
		o, err := ProviderAggregates(ctx, s, id)
		if err != nil {
			return err
		}
		return s.Output.PrintObject(o, []string{"provider", "resource_provider_generation", "aggregates"})
	}
}

// ProviderAggregates reads the aggregates and the generation of a resource provider.
func ProviderAggregates(ctx context.Context, s *cli.Session, provider string) (cli.Object, error) {
	var o cli.Object
	if err := s.API.Do(ctx, "GET", Providers.ObjectPath(provider)+"/aggregates", nil, &o); err != nil {
		return nil, err
	}
	o["provider"] = provider
	return o, nil
}

func setAggregates(f *pflag.FlagSet) cli.Action {
	generation := generationFlag(f, "the provider's generation")
	return func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := Providers.Resolve(ctx, s, args[0])
		if err != nil {
			return err
		}
		now, err := ProviderAggregates(ctx, s, id)
		if err != nil {
			return err
		}
		body := cli.Object{
			"aggregates":                   args[1:],
			"resource_provider_generation": generation(cli.Integer(now["resource_provider_generation"])),
		}
		var o cli.Object
		if err := s.API.Do(ctx, "PUT", Providers.ObjectPath(id)+"/aggregates", body, &o); err != nil {
			return err
		}
		o["provider"] = id
		return s.Output.PrintObject(o, []string{"provider", "resource_provider_generation", "aggregates"})
	}
}
