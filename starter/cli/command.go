package cli

import (
	"context"
	"strings"

	"github.com/spf13/pflag"
)

// Action is the function of a command. starter calls an Action after it has parsed the flags of the command.
type Action func(ctx context.Context, s *Session, args []string) error

// Command is one row of the table of commands that Tree contains.
type Command struct {
	// for example "port show PORT": capitals are arguments, brackets mark optional ones
	Words   string
	Help    string                      // one line
	Details string                      // longer help text, may be empty
	Bind    func(*pflag.FlagSet) Action // declares the flags and returns the action
}

// RequireYes declares the flag --yes, and returns an action that refuses to run without --yes. Commands use
// RequireYes for actions that no API call can undo.
func RequireYes(f *pflag.FlagSet, act Action) Action {
	yes := f.Bool("yes", false, "confirm an action that cannot be undone")
	return func(ctx context.Context, s *Session, args []string) error {
		if !*yes {
			return Errorf(ExitUsage, "Repeat with --yes to confirm.", "this cannot be undone")
		}
		return act(ctx, s, args)
	}
}

// SplitWords splits the usage of a command, for example "port show PORT", into the path of the command (port
// show) and the names of the arguments (PORT).
func SplitWords(words string) (path, arguments []string) {
	for word := range strings.FieldsSeq(words) {
		if word == strings.ToLower(word) {
			path = append(path, word)
		} else {
			arguments = append(arguments, word)
		}
	}
	return path, arguments
}

// ParsePairs parses NAME=VALUE words.
func ParsePairs(words []string) (map[string]string, error) {
	pairs := map[string]string{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, UsageError("%q is not NAME=VALUE", word)
		}
		pairs[name] = value
	}
	return pairs, nil
}
