package main

import (
	"context"

	"github.com/spf13/pflag"
)

// journalVerb tells the journal what to do with an entry.
func journalVerb(verb string) func(*pflag.FlagSet) action {
	return func(*pflag.FlagSet) action {
		return func(ctx context.Context, s *session, args []string) error {
			if !digits.MatchString(args[0]) {
				return usage("%q is not the number of an entry", args[0])
			}
			var o object
			if err := s.api.do(ctx, "POST", entries.at(args[0])+"/"+verb, nil, &o); err != nil {
				return err
			}
			if o = entries.bare(o); len(o) > 0 {
				return s.out.show(o, entries.columns)
			}
			return s.out.say(object{"seq": args[0], verb: true}, "journal entry %s: %s is on its way", args[0], verb)
		}
	}
}

func journalSkip(f *pflag.FlagSet) action { return final(f, journalVerb("skip")(f)) }
