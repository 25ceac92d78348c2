package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"berth/internal/store"
)

// checkup is one line of the doctor's report.
type checkup struct {
	what string
	run  func(ctx context.Context, s *session) (found string, err error)
}

// errUnset says that a neighbour is not known here, which is not wrong by itself.
var errUnset = errors.New("not checked")

func doctor(*pflag.FlagSet) action {
	return func(ctx context.Context, s *session, _ []string) error {
		checks := checkups()
		results := make([]object, len(checks))
		errs := make([]error, len(checks))
		var wg sync.WaitGroup
		for i, c := range checks {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
				defer cancel()
				found, err := c.run(ctx, s)
				results[i], errs[i] = result(c.what, found, err)
			})
		}
		wg.Wait()
		if err := printCheckup(s, results); err != nil {
			return err
		}
		for _, err := range errs {
			if err != nil {
				return &trouble{code: exitCode(err), what: "not everything that berth needs is there", next: "Each FAIL says what to do."}
			}
		}
		return nil
	}
}

func checkups() []checkup {
	return []checkup{
		{"database", checkDatabase},
		{"API", checkAPI},
		{"Temporal", checkTemporal},
		{"workers", checkPollers},
		{"search attributes", checkAttributes},
		{"OpenDaylight", checkODL},
		{"Nova", checkNova},
		{"RabbitMQ", checkRabbitMQ},
	}
}

func result(what, found string, err error) (object, error) {
	var t *trouble
	switch {
	case err == nil:
		return object{"check": what, "state": "ok", "found": found}, nil
	case errors.Is(err, errUnset):
		return object{"check": what, "state": "-", "found": err.Error()}, nil
	case errors.As(err, &t):
		return object{"check": what, "state": "FAIL", "found": err.Error(), "next": t.next}, err
	default:
		return object{"check": what, "state": "FAIL", "found": err.Error()}, err
	}
}

func printCheckup(s *session, results []object) error {
	if s.out.format != "table" {
		return s.out.value(results)
	}
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, "%-4s  %-17s  %s\n", r["state"], r["check"], clean(fmt.Sprint(r["found"])))
		if next, _ := r["next"].(string); next != "" {
			fmt.Fprintf(&b, "%25s%s\n", "", clean(next))
		}
	}
	_, err := fmt.Fprint(s.out.w, b.String())
	return err
}

func checkDatabase(ctx context.Context, s *session) (string, error) {
	if s.database == "" {
		return "", fmt.Errorf("%w: BERTH_DATABASE_URL is not set here", errUnset)
	}
	steps, err := store.Migrations(ctx, s.database)
	if err != nil {
		return "", away("the database", "Is PostgreSQL running, and is BERTH_DATABASE_URL right?", err)
	}
	for _, m := range steps {
		if !m.Applied {
			return "", fail(exitOther, "Run `starter migrate`.", "the schema lacks %s", m.Name)
		}
	}
	return fmt.Sprintf("reached, and the schema is at %d", steps[len(steps)-1].Version), nil
}

func checkAPI(ctx context.Context, s *session) (string, error) {
	if err := s.api.do(ctx, "GET", "/readyz", nil, nil); err != nil {
		var t *trouble
		if errors.As(err, &t) && refused(err, http.StatusServiceUnavailable) {
			t.next = "It runs but does not progress: look at the other lines and at its log."
		}
		return "", err
	}
	return s.url + " is ready", nil
}

func checkODL(ctx context.Context, s *session) (string, error) {
	if s.ODL.URL == "" {
		return "", fmt.Errorf("%w: BERTH_ODL_URL is not set here", errUnset)
	}
	status, err := probe(ctx, s.ODL.URL+"/networks", s.ODL.Username, s.ODL.Password, s.ODL.CAFile)
	switch {
	case err != nil:
		return "", away("OpenDaylight at "+s.ODL.URL, "Journal entries wait until it is back; is BERTH_ODL_URL right?", err)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "", fail(exitDenied, "Set BERTH_ODL_USERNAME and BERTH_ODL_PASSWORD.", "OpenDaylight refuses the user (%d)", status)
	case status != http.StatusOK:
		return "", fail(exitUnavailable, "Does BERTH_ODL_URL end in /controller/nb/v2/neutron?", "OpenDaylight at %s answers %d", s.ODL.URL, status)
	}
	return s.ODL.URL + " answers", nil
}

func checkNova(ctx context.Context, s *session) (string, error) {
	if s.Nova.URL == "" {
		return "", fmt.Errorf("%w: BERTH_NOVA_URL is not set here", errUnset)
	}
	if _, err := probe(ctx, s.Nova.URL, "", "", ""); err != nil {
		return "", away("Nova at "+s.Nova.URL, "Its events are kept until it is back; is BERTH_NOVA_URL right?", err)
	}
	return s.Nova.URL + " answers", nil
}
