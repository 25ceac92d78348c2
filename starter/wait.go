package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// gone is the word for waiting until there is nothing to look at.
const gone = "DELETED"

// deadEnds are, for a status that is wanted, those from which an object does not come to it by itself.
var deadEnds = map[string]map[string][]string{
	"port": {"ACTIVE": {"ERROR"}},
	"lease": {
		"PENDING":    {"STARTING", "ACTIVE", "TERMINATING", "TERMINATED", "ERROR"},
		"STARTING":   {"ACTIVE", "TERMINATING", "TERMINATED", "ERROR"},
		"ACTIVE":     {"TERMINATING", "TERMINATED", "ERROR"},
		"TERMINATED": {"ERROR"},
	},
}

// statuses are what a kind of object can be in.
var statuses = map[string][]string{
	"port":  {"ACTIVE", "DOWN", "BUILD", "ERROR"},
	"lease": {"PENDING", "STARTING", "ACTIVE", "TERMINATING", "TERMINATED", "UPDATING", "DELETING", "ERROR"},
}

// waiting waits until an object has a status.
func waiting(n *noun, otherwise string) func(*pflag.FlagSet) action {
	return func(f *pflag.FlagSet) action {
		status := f.String("for", otherwise, "the status to wait for, or deleted")
		limit := timeout(f, 5*time.Minute, "give up after this")
		return func(ctx context.Context, s *session, args []string) error {
			wanted := strings.ToUpper(*status)
			if all := append(slices.Clone(statuses[n.name]), gone); !slices.Contains(all, wanted) {
				return usage("a %s is never %q, only one of %s", n.name, *status, strings.ToLower(strings.Join(all, ", ")))
			}
			id, err := n.resolve(ctx, s, args[0])
			if err != nil {
				if wanted == gone && exitCode(err) == exitNotFound {
					return s.out.say(object{n.id: args[0], "deleted": true}, "%s %s is deleted, or never was", n.name, args[0])
				}
				return err
			}
			o, err := await(ctx, s, n, id, wanted, *limit)
			if err != nil {
				return err
			}
			if o == nil {
				return s.out.say(object{n.id: id, "deleted": true}, "%s %s is deleted", n.name, id)
			}
			return s.out.show(o, n.columns)
		}
	}
}

// await looks until the object has the status that is wanted. The API may be away meanwhile.
func await(ctx context.Context, s *session, n *noun, id, wanted string, limit time.Duration) (object, error) {
	began := time.Now()
	pause := 50 * time.Millisecond
	for {
		o, err := n.get(ctx, s, id)
		status := fmt.Sprint(o["status"])
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && exitCode(err) == exitNotFound && wanted == gone:
			return nil, nil
		case err != nil && exitCode(err) != exitUnavailable:
			return nil, err
		case err == nil && status == wanted:
			return o, nil
		case err == nil && slices.Contains(deadEnds[n.name][wanted], status):
			return nil, fail(exitWait, blockers(o), "%s %s is %s and will not become %s", n.name, n.word(o), status, wanted)
		}
		if time.Since(began)+pause > limit {
			if err != nil {
				return nil, fail(exitWait, err.Error(), "%s %s was not seen to be %s within %s", n.name, id, wanted, limit)
			}
			return nil, fail(exitWait, blockers(o), "%s %s is still %s after %s", n.name, n.word(o), status, limit)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(pause*3/2, time.Second)
	}
}

// why is the sentence with which the API explains an object, if it does.
func why(o object) string {
	reason, _ := o[because].(object)
	sentence, _ := reason["sentence"].(string)
	return sentence
}
