package main

import (
	"context"

	"github.com/spf13/pflag"
)

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
