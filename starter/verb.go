package main

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// listing lists a noun's collection.
func listing(n *noun) func(*pflag.FlagSet) action {
	return func(f *pflag.FlagSet) action {
		filters := f.StringArray("filter", nil, "only those with ATTRIBUTE=VALUE, as the API filters")
		w := watching(f)
		return func(ctx context.Context, s *session, _ []string) error {
			query := url.Values{}
			given, err := pairs(*filters)
			if err != nil {
				return err
			}
			for name, value := range given {
				query.Set(name, value)
			}
			look := func(ctx context.Context) ([]object, error) { return n.all(ctx, s, query) }
			return w.list(ctx, s, n, look)
		}
	}
}

// showing shows one object of a noun.
func showing(n *noun) func(*pflag.FlagSet) action {
	return func(f *pflag.FlagSet) action {
		w := watching(f)
		return func(ctx context.Context, s *session, args []string) error {
			id, err := n.resolve(ctx, s, args[0])
			if err != nil {
				return err
			}
			return w.show(ctx, s, n, func(ctx context.Context) (object, error) { return n.get(ctx, s, id) })
		}
	}
}

// creating makes an object of a noun; its name is the argument, if it has one.
func creating(n *noun, adjust func(body object) error) func(*pflag.FlagSet) action {
	return func(f *pflag.FlagSet) action {
		given := declare(f, n.fields, "create")
		return func(ctx context.Context, s *session, args []string) error {
			body, err := given(ctx, s)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				body[n.label] = args[0]
			}
			if adjust != nil {
				if err := adjust(body); err != nil {
					return err
				}
			}
			o, err := n.create(ctx, s, body)
			if err != nil {
				return err
			}
			return s.out.show(o, n.columns)
		}
	}
}

// setting changes an object of a noun.
func setting(n *noun) func(*pflag.FlagSet) action {
	return func(f *pflag.FlagSet) action {
		given := declare(f, n.fields, "set")
		match := revision(f, n)
		return func(ctx context.Context, s *session, args []string) error {
			body, err := given(ctx, s)
			if err != nil {
				return err
			}
			if len(body) == 0 {
				return fail(exitUsage, "See `starter "+n.name+" set --help`.", "nothing to set")
			}
			id, err := n.resolve(ctx, s, args[0])
			if err != nil {
				return err
			}
			o, err := n.update(ctx, s, id, body, match()...)
			if err != nil {
				return err
			}
			return s.out.show(o, n.columns)
		}
	}
}

// deleting removes objects of a noun.
func deleting(n *noun) func(*pflag.FlagSet) action {
	return func(f *pflag.FlagSet) action {
		match := revision(f, n)
		return final(f, func(ctx context.Context, s *session, args []string) error {
			for _, word := range args {
				id, err := n.resolve(ctx, s, word)
				if err != nil {
					return err
				}
				done, err := n.remove(ctx, s, id, match()...)
				if err != nil {
					return err
				}
				became := "is deleted"
				if !done {
					became = "is being deleted"
				}
				if err := s.out.say(object{n.id: id, "deleted": done}, "%s %s %s", n.name, id, became); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// revision lets a change of a networking object name the revision that it is based on.
func revision(f *pflag.FlagSet, n *noun) func() []string {
	if n.filter != "name" || n.one == "" {
		return func() []string { return nil }
	}
	at := f.Int64("revision", 0, "only if the object is still at this revision_number")
	return func() []string {
		if !f.Changed("revision") {
			return nil
		}
		return []string{"If-Match", "revision_number=" + strconv.FormatInt(*at, 10)}
	}
}

// timeout is the flag of commands that wait.
func timeout(f *pflag.FlagSet, otherwise time.Duration, help string) *time.Duration {
	return f.Duration("timeout", otherwise, help)
}
