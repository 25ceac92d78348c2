package resource

import (
	"context"
	"net/url"
	"strconv"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

// requireAttribute returns a function that checks that the body of a create request has the attribute `key`,
// which the flag sets.
func requireAttribute(key, flag string) func(cli.Object) error {
	return func(body cli.Object) error {
		if body[key] == nil {
			return cli.UsageError("%s is missing", flag)
		}
		return nil
	}
}

// listCommand makes the command that lists a collection.
func listCommand(r *cli.Resource) func(*pflag.FlagSet) cli.Action {
	return func(f *pflag.FlagSet) cli.Action {
		filters := f.StringArray("filter", nil, "list only objects with ATTRIBUTE=VALUE; may be repeated")
		w := cli.ListFlags(f)
		return func(ctx context.Context, s *cli.Session, _ []string) error {
			query := url.Values{}
			given, err := cli.ParsePairs(*filters)
			if err != nil {
				return err
			}
			for name, value := range given {
				query.Set(name, value)
			}
			read := func(ctx context.Context) ([]cli.Object, error) { return r.List(ctx, s, query) }
			return w.List(ctx, s, r, read)
		}
	}
}

// showCommand makes the command that shows one object.
func showCommand(r *cli.Resource) func(*pflag.FlagSet) cli.Action {
	return func(f *pflag.FlagSet) cli.Action {
		w := cli.WatchFlags(f)
		return func(ctx context.Context, s *cli.Session, args []string) error {
			id, err := r.Resolve(ctx, s, args[0])
			if err != nil {
				return err
			}
			return w.Show(ctx, s, r,
				func(ctx context.Context) (cli.Object, error) { return r.Get(ctx, s, id) })
		}
	}
}

// createCommand makes the command that creates an object. The argument of the command is the name of the new
// object. The function `adjust` may check or complete the body of the request; `adjust` may be nil.
func createCommand(r *cli.Resource, adjust func(body cli.Object) error) func(*pflag.FlagSet) cli.Action {
	return func(f *pflag.FlagSet) cli.Action {
		given := cli.DeclareFields(f, r.Fields, "create")
		return func(ctx context.Context, s *cli.Session, args []string) error {
			body, err := given(ctx, s)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				body[r.NameKey] = args[0]
			}
			if adjust != nil {
				if err := adjust(body); err != nil {
					return err
				}
			}
			o, err := r.Create(ctx, s, body)
			if err != nil {
				return err
			}
			return s.Output.PrintObject(o, r.Columns)
		}
	}
}

// setCommand makes the command that changes an object.
func setCommand(r *cli.Resource) func(*pflag.FlagSet) cli.Action {
	return func(f *pflag.FlagSet) cli.Action {
		given := cli.DeclareFields(f, r.Fields, "set")
		ifMatch := revisionFlag(f, r)
		return func(ctx context.Context, s *cli.Session, args []string) error {
			body, err := given(ctx, s)
			if err != nil {
				return err
			}
			if len(body) == 0 {
				return cli.Errorf(cli.ExitUsage, "See `starter "+r.Name+" set --help`.", "nothing to set")
			}
			id, err := r.Resolve(ctx, s, args[0])
			if err != nil {
				return err
			}
			o, err := r.Update(ctx, s, id, body, ifMatch()...)
			if err != nil {
				return err
			}
			return s.Output.PrintObject(o, r.Columns)
		}
	}
}

// deleteCommand makes the command that deletes objects.
func deleteCommand(r *cli.Resource) func(*pflag.FlagSet) cli.Action {
	return func(f *pflag.FlagSet) cli.Action {
		ifMatch := revisionFlag(f, r)
		return cli.RequireYes(f, func(ctx context.Context, s *cli.Session, args []string) error {
			for _, word := range args {
				id, err := r.Resolve(ctx, s, word)
				if err != nil {
					return err
				}
				done, err := r.Delete(ctx, s, id, ifMatch()...)
				if err != nil {
					return err
				}
				result := "is deleted"
				if !done {
					result = "is being deleted"
				}
				if err := s.Output.PrintMessage(cli.Object{r.IDKey: id, "deleted": done}, "%s %s %s", r.Name, id, result); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// revisionFlag declares --revision for Neutron's objects. The function that revisionFlag returns makes the
// header If-Match. With the header If-Match, the API refuses a change if the object has another revision than
// the header names.
func revisionFlag(f *pflag.FlagSet, r *cli.Resource) func() []string {
	if r.NameFilter != "name" || r.SingularKey == "" {
		return func() []string { return nil }
	}
	number := f.Int64("revision", 0, "change the object only if its revision_number is still this")
	return func() []string {
		if !f.Changed("revision") {
			return nil
		}
		return []string{"If-Match", "revision_number=" + strconv.FormatInt(*number, 10)}
	}
}
