package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
)

const whyHelp = `OBJECT is port/NAME, lease/NAME or journal/SEQ; an ID is as good as a name. The workflow is asked first; when it is
closed, or Temporal is away, the API answers from the row. It may also be what brings something out: webhook/LEASE (what listeners hear
of it), announce/NETWORK (what agents hear of it), pool/HOST (what the cloud hears of it), or odl/full-sync, odl/recovery, odl/audit and
odl/repair.`

// explanation is a Why and who gave it.
type explanation struct {
	contract.Why
	Source string `json:"source"`         // workflow, api, or temporal where no workflow runs
	Note   string `json:"note,omitempty"` // why it was not the workflow
	// Agents are those for whose word a port waits.
	Agents []debtor `json:"agents,omitempty"`
}

func whyObject(*pflag.FlagSet) action {
	return func(ctx context.Context, s *session, args []string) error {
		if workflow, err := errand(ctx, s, args[0]); err != nil || workflow != "" {
			return whyErrand(ctx, s, workflow, err)
		}
		n, id, err := target(ctx, s, args[0])
		if err != nil {
			return err
		}
		e, err := explain(ctx, s, n, id)
		if err != nil {
			return err
		}
		e.Agents = debtors(ctx, s, n, id, e.Why)
		return printWhy(s, e)
	}
}

// errand is the ID of a workflow that brings something out and has no row that the API shows; empty if the word names none.
func errand(ctx context.Context, s *session, word string) (string, error) {
	kind, name, _ := strings.Cut(word, "/")
	switch {
	case name == "":
		return "", nil
	case kind == "pool":
		return contract.PoolID(name), nil
	case kind == "webhook":
		id, err := leases.resolve(ctx, s, name)
		return contract.WebhookID(id), err
	case kind == "announce":
		id, err := networks.resolve(ctx, s, name)
		return contract.AnnounceID(id), err
	case kind == "odl" && contract.RunWorkflows[name] == "":
		return "", usage("%q is none of odl/%s", word, strings.Join(slices.Sorted(maps.Keys(contract.RunWorkflows)), ", odl/"))
	case kind == "odl":
		return contract.RunID(name), nil
	}
	return "", nil
}

// whyErrand asks such a workflow. One that has ended had nothing left to do.
func whyErrand(ctx context.Context, s *session, workflow string, err error) error {
	if err != nil {
		return err
	}
	w, err := ask(ctx, s, workflow)
	switch {
	case errors.Is(err, errClosed):
		w = contract.Why{Object: workflow, State: "closed", Sentence: "It has ended; it begins again when there is something to do."}
		return printWhy(s, explanation{Why: w, Source: "temporal"})
	case errors.Is(err, errUnborn):
		return fail(exitNotFound, "It runs while there is something to do.", "no workflow runs as %s", workflow)
	case err != nil:
		return err
	}
	return printWhy(s, explanation{Why: w, Source: "workflow"})
}

// explain asks the workflow, else the API.
func explain(ctx context.Context, s *session, n *noun, id string) (explanation, error) {
	w, asked := ask(ctx, s, workflowID(n, id))
	if asked == nil {
		return explanation{Why: w, Source: "workflow"}, nil
	}
	o, err := n.get(ctx, s, id)
	if err != nil {
		if exitCode(err) == exitUnavailable {
			return explanation{}, errors.Join(asked, err)
		}
		return explanation{}, err
	}
	note := "Temporal cannot be asked"
	if errors.Is(asked, errClosed) || exitCode(asked) == exitNotFound {
		note = "no workflow runs for it"
	}
	return explanation{Why: whyOf(n, id, o), Source: "api", Note: note}, nil
}

var errClosed = errors.New("the workflow is closed")

// ask queries a running workflow.
func ask(ctx context.Context, s *session, workflow string) (contract.Why, error) {
	var w contract.Why
	c, err := s.temporal(ctx)
	if err != nil {
		return w, err
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	answer, err := c.QueryWorkflowWithOptions(ctx, &client.QueryWorkflowWithOptionsRequest{WorkflowID: workflow,
		QueryType: contract.QueryWhy, QueryRejectCondition: enums.QUERY_REJECT_CONDITION_NOT_OPEN})
	switch {
	case err != nil:
		return w, temporalTrouble(s.settings, workflow, err)
	case answer.QueryRejected != nil:
		return w, errClosed
	}
	return w, answer.QueryResult.Get(&w)
}

// whyOf reads the API's explanation of an object.
func whyOf(n *noun, id string, o object) contract.Why {
	state, _ := o["status"].(string)
	if state == "" {
		state, _ = o["state"].(string)
	}
	w := contract.Why{Object: workflowID(n, id), State: state, Sentence: why(o)}
	if w.Sentence == "" {
		w.Sentence = fmt.Sprintf("%s %s is %s", n.name, n.word(o), state)
	}
	w.LastError, _ = o["last_error"].(string)
	reason, _ := o["berth:why"].(object)
	all, _ := objects(reason["waiting"])
	for _, p := range all {
		party, _ := p["for"].(string)
		w.Waiting = append(w.Waiting, contract.Waiting{For: party, Since: moment(p["since"]), Deadline: moment(p["deadline"])})
	}
	return w
}

func moment(v any) *time.Time {
	word, _ := v.(string)
	t, err := time.Parse(time.RFC3339, word)
	if err != nil {
		return nil
	}
	return &t
}

func printWhy(s *session, e explanation) error {
	if s.out.format != "table" {
		return s.out.value(e)
	}
	from := map[string]string{"workflow": "says its workflow", "api": "says the API; " + e.Note, "temporal": "says Temporal"}[e.Source]
	if err := s.out.say(nil, "%s: %s (%s)", e.Object, e.Sentence, from); err != nil {
		return err
	}
	var rows [][]string
	for _, p := range e.Waiting {
		rows = append(rows, []string{p.For, since(p.Since), until(p.Deadline)})
	}
	if len(rows) > 0 {
		if err := table(s.out.w, []string{"waits for", "since", "until"}, rows); err != nil {
			return err
		}
	}
	for _, d := range e.Agents {
		if err := s.out.say(nil, "%s: %s", d.For, d.Sentence); err != nil {
			return err
		}
	}
	return printTroubles(s, e.Why)
}

func printTroubles(s *session, w contract.Why) error {
	var err error
	if w.LastError != "" {
		err = errors.Join(err, s.out.say(nil, "last error: %s", w.LastError))
	}
	if w.NextAttempt != nil {
		err = errors.Join(err, s.out.say(nil, "next attempt: %s", w.NextAttempt.Local().Format(time.RFC3339)))
	}
	if w.IgnoredReports > 0 {
		err = errors.Join(err, s.out.say(nil, "ignored reports: %d", w.IgnoredReports))
	}
	return err
}

func since(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return fmt.Sprintf("%s (%s ago)", t.Local().Format("15:04:05"), time.Since(*t).Round(time.Second))
}

func until(t *time.Time) string {
	if t == nil {
		return "as long as it takes"
	}
	return t.Local().Format(time.RFC3339)
}
