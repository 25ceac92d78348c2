package diagnosis

import (
	"context"
	"fmt"
	"strings"
	"time"

	"berth/starter/cli"
)

// maxNamedOverdue is the maximum number of overdue objects of a kind that doctor names.
const maxNamedOverdue = 2

// overdueKind has the overdue objects of one kind.
type overdueKind struct {
	Kind    string
	Count   int64
	AtLeast bool `json:"at_least"`
	Worst   []struct {
		Object  string
		Reason  string
		Seconds float64 `json:"overdue_seconds"`
	}
}

// String counts the objects and names the worst.
func (k overdueKind) String() string {
	names := make([]string, 0, maxNamedOverdue)
	for _, o := range k.Worst[:min(len(k.Worst), maxNamedOverdue)] {
		name := fmt.Sprintf("%s for %s",
			o.Object, time.Duration(o.Seconds*float64(time.Second)).Round(time.Second))
		if o.Reason != "" {
			name += " (" + o.Reason + ")"
		}
		names = append(names, name)
	}
	count := fmt.Sprint(k.Count)
	if k.AtLeast {
		count = "at least " + count
	}
	return fmt.Sprintf("%s of the kind %s: %s", count, k.Kind, strings.Join(names, ", "))
}

// checkOverdue names the objects that should have made progress by now. Silent agents alone are a warning,
// because no object may need them.
func checkOverdue(ctx context.Context, s *cli.Session) (string, error) {
	var o struct{ Overdue []overdueKind }
	if err := readAPI(ctx, s, "/operator/v1/overdue", &o); err != nil {
		return "", err
	}
	kinds := make([]string, len(o.Overdue))
	onlyAgents := true
	for i, k := range o.Overdue {
		kinds[i] = k.String()
		onlyAgents = onlyAgents && k.Kind == "agent"
	}
	found := strings.Join(kinds, "; ")
	switch {
	case found == "":
		return "nothing is overdue", nil
	case onlyAgents:
		return "", fmt.Errorf("%w: %s", errWarning, found)
	default:
		return "", cli.Errorf(cli.ExitOther, "`starter why OBJECT` explains an object.", "%s", found)
	}
}
