package harness

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
)

// ParseFlags parses the command line of a program, which has only flags, and calls the function `check`,
// which checks and converts their values. If the user asks for help, the error is flag.ErrHelp; all other
// errors wrap ErrUsage.
func ParseFlags(flags *flag.FlagSet, args []string, check func() error) error {
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err == nil:
		err = check()
	}
	if err != nil {
		return fmt.Errorf("%w: %w; see %s -h", ErrUsage, err, flags.Name())
	}
	return nil
}

// ParseAscending parses a comma-separated list of ascending numbers, of which none is below the minimum.
func ParseAscending(list string, minimum int) ([]int, error) {
	var all []int
	next := minimum
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < next {
			return nil, fmt.Errorf("%q is no number from %d on; the numbers ascend", text, next)
		}
		all, next = append(all, n), n+1
	}
	return all, nil
}
