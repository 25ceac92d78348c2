package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"berth/internal/store/db"
	"berth/starter/cli"
)

// checkTimeout is the maximum duration of one check.
const checkTimeout = 15 * time.Second

// check is one check of the command doctor. Its result is one line of the output.
type check struct {
	name string
	run  func(ctx context.Context, s *cli.Session) (found string, err error)
}

// errNotConfigured means that the settings do not name a service. The command doctor does not report this as a failure.
var errNotConfigured = errors.New("not checked")

// errWarning means that a service works in an unusual way. The command doctor does not report this as a failure.
var errWarning = errors.New("attention")

func doctorCommand(*pflag.FlagSet) cli.Action {
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		checks := checks()
		results := make([]cli.Object, len(checks))
		errs := make([]error, len(checks))
		var wg sync.WaitGroup
		for i, c := range checks {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, checkTimeout)
				defer cancel()
				found, err := c.run(ctx, s)
				results[i], errs[i] = resultRow(c.name, found, err)
			})
		}
		wg.Wait()
		if err := printResults(s, results); err != nil {
			return err
		}
		for _, err := range errs {
			if err != nil {
				return &cli.Error{Code: cli.ExitCode(err), What: "some checks failed", Next: "Each FAIL has advice on the next line."}
			}
		}
		return nil
	}
}

func checks() []check {
	return []check{
		{"database", checkDatabase},
		{"API", checkAPI},
		{"Temporal", checkTemporal},
		{"workers", checkPollers},
		{"search attributes", checkAttributes},
		{"OpenDaylight", checkODL},
		{"journal", checkJournal},
		{"notes", checkNotes},
		{"Nova", checkNova},
		{"RabbitMQ", checkRabbitMQ},
	}
}

// resultRow makes the row of the output for a check. If the check failed, resultRow also returns its error.
func resultRow(name, found string, err error) (cli.Object, error) {
	var e *cli.Error
	switch {
	case err == nil:
		return cli.Object{"check": name, "state": "ok", "found": found}, nil
	case errors.Is(err, errNotConfigured):
		return cli.Object{"check": name, "state": "-", "found": err.Error()}, nil
	case errors.Is(err, errWarning):
		return cli.Object{"check": name, "state": "WARN", "found": err.Error()}, nil
	case errors.As(err, &e):
		return cli.Object{"check": name, "state": "FAIL", "found": err.Error(), "next": e.Next}, err
	default:
		return cli.Object{"check": name, "state": "FAIL", "found": err.Error()}, err
	}
}

func printResults(s *cli.Session, results []cli.Object) error {
	if s.Output.Format != "table" {
		return s.Output.PrintDocument(results)
	}
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, "%-4s  %-17s  %s\n", r["state"], r["check"], cli.Sanitize(fmt.Sprint(r["found"])))
		if next, _ := r["next"].(string); next != "" {
			fmt.Fprintf(&b, "%25s%s\n", "", cli.Sanitize(next))
		}
	}
	_, err := fmt.Fprint(s.Output.Writer, b.String())
	return err
}

func checkDatabase(ctx context.Context, s *cli.Session) (string, error) {
	if s.DatabaseURL == "" {
		return "", fmt.Errorf("%w: BERTH_DATABASE_URL is not set", errNotConfigured)
	}
	migrations, err := db.Migrations(ctx, s.DatabaseURL)
	if err != nil {
		return "", cli.Unavailable("the database", "Is PostgreSQL running, and is BERTH_DATABASE_URL correct?", err)
	}
	for _, m := range migrations {
		if !m.Applied {
			return "", cli.Errorf(cli.ExitOther, "Run `starter migrate`.", "the schema lacks migration %s", m.Name)
		}
	}
	return fmt.Sprintf("reachable, schema version %d", migrations[len(migrations)-1].Version), nil
}

func checkAPI(ctx context.Context, s *cli.Session) (string, error) {
	if err := s.API.Do(ctx, "GET", "/readyz", nil, nil); err != nil {
		var e *cli.Error
		if errors.As(err, &e) && cli.IsStatus(err, http.StatusServiceUnavailable) {
			e.Next = "The API runs but is not ready: see the other checks and the log of the worker."
		}
		return "", err
	}
	return s.URL + " is ready", nil
}

// checkJournal warns if an administrator has paused the journal.
func checkJournal(ctx context.Context, s *cli.Session) (string, error) {
	var o struct {
		Pause struct {
			Paused bool   `json:"paused"`
			At     string `json:"paused_at"`
			Actor  string `json:"actor"`
			Reason string `json:"reason"`
		} `json:"pause"`
	}
	err := s.API.Do(ctx, "GET", "/journal/v1/pause", nil, &o)
	switch p := o.Pause; {
	case cli.IsStatus(err, http.StatusForbidden) || cli.IsStatus(err, http.StatusNotFound):
		return "", fmt.Errorf("%w: the API does not show whether the journal is paused", errNotConfigured)
	case err != nil:
		return "", err
	case p.Paused:
		return "", fmt.Errorf("%w: the journal is paused by %s since %s: %s; `starter journal resume` ends the pause", errWarning, p.Actor, p.At, p.Reason)
	default:
		return "the journal is not paused", nil
	}
}

// checkNotes warns if notes are set aside.
func checkNotes(ctx context.Context, s *cli.Session) (string, error) {
	var o struct {
		SetAside int `json:"set_aside"`
	}
	err := s.API.Do(ctx, "GET", "/operator/v1/notes?state=set-aside&limit=1", nil, &o)
	switch {
	case cli.IsStatus(err, http.StatusForbidden) || cli.IsStatus(err, http.StatusNotFound):
		return "", fmt.Errorf("%w: the API does not show the notes", errNotConfigured)
	case err != nil:
		return "", err
	case o.SetAside > 0:
		return "", fmt.Errorf("%w: Temporal refuses %d notes, which are set aside; `starter note list --state set-aside` shows the reasons", errWarning, o.SetAside)
	default:
		return "Temporal refuses no note", nil
	}
}
