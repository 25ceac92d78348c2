package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"berth/internal/safeurl"
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

// errNotConfigured means that a check is not possible, for example because the settings do not name the
// service, or because the token may not read the path. The command doctor does not report this as a failure.
var errNotConfigured = errors.New("not checked")

// errWarning means that berth works but needs attention, or that an administrator has chosen the state that
// the check has found, for example a paused journal. The command doctor does not report this as a failure.
var errWarning = errors.New("attention")

const doctorHelp = "The result of a check is ok, WARN or FAIL, or - if the check was not possible. The exit code is 0 if no check is FAIL;\n" +
	"otherwise it is the exit code of the first FAIL. WARN means that berth works but needs\n" +
	"attention, or that an administrator has chosen this state, for example a paused journal."

func doctorCommand(*pflag.FlagSet) cli.Action {
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		checks := checks()
		results := make([]cli.Object, len(checks))
		errs := make([]error, len(checks))
		var wg sync.WaitGroup
		for i, c := range checks {
			wg.Go(func() {
				ctx, cancel := s.WithTimeout(ctx, checkTimeout)
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
				return &cli.Error{
					Code: cli.ExitCode(err),
					What: "some checks failed",
					Next: "Each FAIL has advice on the next line.",
				}
			}
		}
		return nil
	}
}

func checks() []check {
	return []check{
		{"database", checkDatabase},
		{"connection pooler", checkPooler},
		{"locks", checkLocks},
		{"database roles", checkRoles},
		{"API", checkAPI},
		{"certificate", checkCertificate},
		{"credentials", checkCredentials},
		{"authentication", checkAuthentication},
		{"notes", checkNotes},
		{"notes set aside", checkSetAsideNotes},
		{"Temporal", checkTemporal},
		{"namespace", checkNamespace},
		{"workers", checkPollers},
		{"worker versions", checkWorkerVersions},
		{"search attributes", checkAttributes},
		{"executions", checkProjection("executions")},
		{"attribute values", checkProjection("search attributes")},
		{"usage", checkProjection("usage")},
		{"maintenance", checkMaintenance},
		{"leases", checkLeases},
		{"hosts", checkHosts},
		{"overdue", checkOverdue},
		{"OpenDaylight", checkODL},
		{"journal", checkJournal},
		{"controller audit", checkAudit},
		{"audit log", checkAuditLog(sealTime)},
		{"Nova", checkNova},
		{"Keystone", checkKeystone},
		{"RabbitMQ", checkRabbitMQ},
		{"virtual hosts", checkVirtualHosts},
		{"secret files", checkSecretFiles},
		{"clocks", checkClocks},
	}
}

// resultRow makes the row of the output for a check. If the check failed, resultRow also returns its error.
// The errors of database drivers contain the URL of the database, so resultRow hides the user and the
// password of each URL.
func resultRow(name, found string, err error) (cli.Object, error) {
	if err != nil {
		found = safeurl.Redact(err.Error())
	}
	var e *cli.Error
	switch {
	case err == nil:
		return cli.Object{"check": name, "state": "ok", "found": found}, nil
	case errors.Is(err, errNotConfigured):
		return cli.Object{"check": name, "state": "-", "found": found}, nil
	case errors.Is(err, errWarning):
		return cli.Object{"check": name, "state": "WARN", "found": found}, nil
	case errors.As(err, &e):
		return cli.Object{
			"check": name,
			"state": "FAIL",
			"found": found,
			"next":  e.Next,
		}, err
	default:
		return cli.Object{"check": name, "state": "FAIL", "found": found}, err
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

// checkDatabase checks that the database can commit a write and has a schema with which berth works.
func checkDatabase(ctx context.Context, s *cli.Session) (string, error) {
	if s.DatabaseURL == "" {
		return "", fmt.Errorf("%w: BERTH_DATABASE_URL is not set", errNotConfigured)
	}
	found, err := db.Probe(ctx, s.DatabaseURL)
	switch {
	case errors.Is(err, db.ErrUnusable):
		return "", &cli.Error{
			Code: cli.ExitUnavailable,
			What: "berth cannot work with the database",
			Err:  err,
			Next: "Does BERTH_DATABASE_URL name the primary server and berth's database? `starter migrate` updates the schema.",
		}
	case errors.Is(err, db.ErrPooled):
		return "", &cli.Error{
			Code: cli.ExitUnavailable,
			What: "berth cannot work with the database",
			Err:  err,
			Next: "docs/operations.md describes the settings for PgBouncer.",
		}
	case err != nil:
		return "", cli.Unavailable("the database",
			"Is PostgreSQL running, and is BERTH_DATABASE_URL correct?", err)
	case found.Schema > found.Program:
		return "", fmt.Errorf(
			"%w: the database has schema version %d, which is newer than version %d of this program; upgrade the processes that still have the old version",
			errWarning, found.Schema, found.Program,
		)
	}
	return fmt.Sprintf("reachable and writable, schema version %d", found.Schema), nil
}

// checkPooler checks that the transactions of berth run through the pooler with the settings of berth.
func checkPooler(ctx context.Context, s *cli.Session) (string, error) {
	if s.DatabasePooler == "" {
		return "", fmt.Errorf("%w: BERTH_DATABASE_POOLER_URL is not set, so transactions use connections to PostgreSQL",
			errNotConfigured)
	}
	err := db.CheckPooler(ctx, s.DatabasePooler)
	switch {
	case errors.Is(err, db.ErrPoolerSettings):
		return "", &cli.Error{
			Code: cli.ExitUnavailable,
			What: "berth cannot work with the pooler",
			Err:  err,
			Next: "docs/operations.md describes the settings for PgBouncer.",
		}
	case err != nil:
		return "", cli.Unavailable("the pooler",
			"Is PgBouncer running, and is BERTH_DATABASE_POOLER_URL correct?", err)
	}
	return "transactions run through it; LISTEN and session locks use connections to PostgreSQL", nil
}
