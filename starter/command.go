package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// action does what a command is for, after its flags were read.
type action func(ctx context.Context, s *session, args []string) error

// command is one row of the table of commands.
type command struct {
	words string // how it is called; capitals are arguments, those in brackets may be missing
	help  string // one line
	more  string // what the line cannot say; may be empty
	do    func(f *pflag.FlagSet) action
}

// tree makes cobra's tree of the table.
func tree(s *session, table []command) *cobra.Command {
	root := group("starter", "berth's command line")
	root.Long = "starter is berth's command line: networks, subnets, ports, agents, leases, hosts, allocations and the journal,\n" +
		"and for each port, lease and entry why it is what it is.\n\n" +
		"Addresses come from flags, else from the environment, else from $BERTH_DATA/env, which `make run` writes.\n\n" + exitHelp
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 {
			return stranger(c, words[0])
		}
		return &trouble{code: exitUsage, what: err.Error(), next: "See `" + c.CommandPath() + " --help`."}
	})
	s.flags(root.PersistentFlags())
	for _, row := range table {
		add(root, s, row)
	}
	return root
}

func group(name, help string) *cobra.Command {
	return &cobra.Command{Use: name, Short: help, Args: cobra.ArbitraryArgs, RunE: func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		return stranger(c, args[0])
	}, SuggestionsMinimumDistance: 2}
}

// stranger refuses a word that is no command of a group.
func stranger(c *cobra.Command, word string) error {
	next := "See `" + c.CommandPath() + " --help`."
	if near := c.SuggestionsFor(word); len(near) > 0 {
		next = "Did you mean `" + c.CommandPath() + " " + near[0] + "`?"
	}
	return fail(exitUsage, next, "%s has no command %q", c.CommandPath(), word)
}

// add hangs one row into the tree, below the group of its noun.
func add(root *cobra.Command, s *session, row command) {
	path, arguments := split(row.words)
	parent := root
	for _, name := range path[:len(path)-1] {
		parent = child(parent, name)
	}
	c := &cobra.Command{Short: row.help, Long: row.more}
	c.Use = strings.Join(append([]string{path[len(path)-1]}, arguments...), " ")
	if row.more != "" {
		c.Long = row.help + ".\n\n" + row.more
	}
	if path[len(path)-1] == "set" && len(path) > 1 {
		c.Aliases = []string{"update"}
	}
	if path[len(path)-1] == "unset" {
		c.SuggestFor = []string{"delete", "remove"}
	}
	c.Args = arity(arguments)
	c.ValidArgsFunction = complete(s, arguments)
	act := row.do(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := s.open(c.OutOrStdout()); err != nil {
			return err
		}
		return act(c.Context(), s, args)
	}
	parent.AddCommand(c)
}

func child(parent *cobra.Command, name string) *cobra.Command {
	for _, c := range parent.Commands() {
		if c.Name() == name {
			return c
		}
	}
	c := group(name, groups[name])
	parent.AddCommand(c)
	return c
}

// split parts "port show PORT" into the path of the command and its arguments.
func split(words string) (path, arguments []string) {
	for word := range strings.FieldsSeq(words) {
		if word == strings.ToLower(word) {
			path = append(path, word)
		} else {
			arguments = append(arguments, word)
		}
	}
	return path, arguments
}

func arity(arguments []string) cobra.PositionalArgs {
	least, most := 0, len(arguments)
	for _, a := range arguments {
		if !strings.HasPrefix(a, "[") {
			least++
		}
		if strings.Contains(a, "...") {
			most = -1
		}
	}
	return func(c *cobra.Command, args []string) error {
		next := "See `" + c.CommandPath() + " --help`."
		switch {
		case len(args) < least:
			return fail(exitUsage, next, "%s needs %s", c.CommandPath(), strings.Join(arguments[len(args):], " "))
		case most >= 0 && len(args) > most:
			return fail(exitUsage, next, "%s does not take %q", c.CommandPath(), args[most])
		}
		return nil
	}
}

// complete offers the names of existing objects where one is expected.
func complete(s *session, arguments []string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(arguments) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		n := nounOf(strings.ToLower(strings.Trim(arguments[len(args)], "[].")))
		if n == nil || s.open(c.OutOrStdout()) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := n.all(c.Context(), s, nil)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		for _, o := range all {
			words = append(words, n.word(o))
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// final guards what no API call can undo.
func final(f *pflag.FlagSet, act action) action {
	yes := f.Bool("yes", false, "do it although it cannot be undone")
	return func(ctx context.Context, s *session, args []string) error {
		if !*yes {
			return fail(exitUsage, "Repeat with --yes if you mean it.", "this cannot be undone")
		}
		return act(ctx, s, args)
	}
}

// pairs reads NAME=VALUE words.
func pairs(words []string) (map[string]string, error) {
	all := map[string]string{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, usage("%q is not NAME=VALUE", word)
		}
		all[name] = value
	}
	return all, nil
}
