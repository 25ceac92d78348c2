package main

import (
	"context"

	"github.com/spf13/pflag"
)

// decide tells the journal what to do with an entry.
func decide(ctx context.Context, s *session, seq, verb string, body any) error {
	if !digits.MatchString(seq) {
		return usage("%q is not the number of an entry", seq)
	}
	var o object
	if err := s.api.do(ctx, "POST", entries.at(seq)+"/"+verb, body, &o); err != nil {
		return err
	}
	return s.out.show(entries.bare(o), entries.columns)
}

func journalSkip(f *pflag.FlagSet) action {
	reason := f.String("reason", "", "why, for those who look at it later")
	return final(f, func(ctx context.Context, s *session, args []string) error {
		return decide(ctx, s, args[0], "skip", object{"reason": *reason})
	})
}

func journalRetry(*pflag.FlagSet) action {
	return func(ctx context.Context, s *session, args []string) error {
		return decide(ctx, s, args[0], "retry", nil)
	}
}
