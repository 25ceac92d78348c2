package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const rootHelp = "starter is berth's command line: networks, subnets, ports, agents, leases, hosts, allocations and the journal.\n" +
	"For each port, lease and journal entry, starter explains the current status.\n\n" +
	"Addresses come from flags, else from the environment, else from $BERTH_DATA/env, which `make run` writes.\n\n" + exitCodesHelp

// Tree is the whole command line, as a table of commands.
type Tree struct {
	Commands    []Command
	Groups      map[string]string // key: first word of the commands of a group; value: help text of the group
	Completable []*Resource       // resources whose names the shell completes
	Version     string            // output of the flag --version
}

// Root converts the table to a cobra command tree.
func (t Tree) Root(s *Session) *cobra.Command {
	root := newGroup("starter", "berth's command line")
	root.Long = rootHelp
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = t.Version
	root.SetVersionTemplate("{{.Version}}")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 {
			return unknownCommand(c, words[0])
		}
		return &Error{Code: ExitUsage, What: err.Error(), Next: seeHelp(c)}
	})
	s.addFlags(root.PersistentFlags())
	for _, row := range t.Commands {
		t.addCommand(root, s, row)
	}
	addManual(root)
	return root
}

func newGroup(name, help string) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: help,
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			return unknownCommand(c, args[0])
		},
		SuggestionsMinimumDistance: 2,
	}
}

func seeHelp(c *cobra.Command) string { return "See `" + c.CommandPath() + " --help`." }

// unknownCommand makes the error for a word that is not a command of the group c.
func unknownCommand(c *cobra.Command, word string) error {
	next := seeHelp(c)
	if near := c.SuggestionsFor(word); len(near) > 0 {
		next = "Did you mean `" + c.CommandPath() + " " + near[0] + "`?"
	}
	return Errorf(ExitUsage, next, "%s has no command %q", c.CommandPath(), word)
}

// addCommand adds one command of the table to the tree. For example, it adds the command with the words
// "journal show SEQ" to the group "journal", and creates the group if it does not exist.
func (t Tree) addCommand(root *cobra.Command, s *Session, row Command) {
	path, arguments := SplitWords(row.Words)
	parent := root
	for _, name := range path[:len(path)-1] {
		parent = t.subgroup(parent, name)
	}
	c := &cobra.Command{Short: row.Help, Long: row.Details}
	c.Use = strings.Join(append([]string{path[len(path)-1]}, arguments...), " ")
	if row.Details != "" {
		c.Long = row.Help + ".\n\n" + row.Details
	}
	if path[len(path)-1] == "set" && len(path) > 1 {
		c.Aliases = []string{"update"}
	}
	if path[len(path)-1] == "unset" {
		c.SuggestFor = []string{"delete", "remove"}
	}
	c.Args = checkArguments(arguments)
	c.ValidArgsFunction = t.completeNames(s, arguments)
	act := row.Bind(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := s.Open(c.OutOrStdout()); err != nil {
			return err
		}
		if c.Flags().Lookup(sortFlag) == nil && slices.Contains(listFormats, s.Format) {
			return UsageError("%s prints no list of objects; it does not support --output %s", c.CommandPath(), s.Format)
		}
		return act(c.Context(), s, args)
	}
	parent.AddCommand(c)
}

// subgroup returns the group with the given name below the command `parent`. If `parent` does not have a
// group with this name, subgroup adds the group.
func (t Tree) subgroup(parent *cobra.Command, name string) *cobra.Command {
	for _, c := range parent.Commands() {
		if c.Name() == name {
			return c
		}
	}
	c := newGroup(name, t.Groups[name])
	parent.AddCommand(c)
	return c
}

// checkArguments checks the number of arguments.
func checkArguments(arguments []string) cobra.PositionalArgs {
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
		switch {
		case len(args) < least:
			return Errorf(ExitUsage, seeHelp(c), "%s needs %s",
				c.CommandPath(), strings.Join(arguments[len(args):], " "))
		case most >= 0 && len(args) > most:
			return Errorf(ExitUsage, seeHelp(c), "%s does not take %q", c.CommandPath(), args[most])
		}
		return nil
	}
}

// plainWord matches a word that no shell interprets. Any member of a project chooses names, and cobra's
// completion for bash inserts the common beginning of several words as it is, and evaluates the command line
// when it completes the next word: a command substitution in a name would run. A name that begins with a
// hyphen would be a flag, such as --url.
var plainWord = regexp.MustCompile(`^[\pL\pN_.@+/][\pL\pN_.@+/-]*$`)

// completeNames returns the names of existing objects for the completion of the shell, or the ID of an object
// whose name is no plain word.
func (t Tree) completeNames(s *Session, arguments []string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(arguments) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		r := t.completable(strings.ToLower(strings.Trim(arguments[len(args)], "[].")))
		if r == nil || s.Open(c.OutOrStdout()) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := r.List(c.Context(), s, nil)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		for _, o := range all {
			word := r.DisplayName(o)
			if !plainWord.MatchString(word) {
				word = fmt.Sprint(o[r.IDKey])
			}
			if plainWord.MatchString(word) {
				words = append(words, word)
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

func (t Tree) completable(name string) *Resource {
	for _, r := range t.Completable {
		if r.Name == name {
			return r
		}
	}
	return nil
}
