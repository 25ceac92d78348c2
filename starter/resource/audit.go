package resource

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"berth/internal/auditlog"
	"berth/starter/cli"
)

const auditPath = "/operator/v1/audit"

const auditTimesHelp = `--since and --until take the time before now (90m, 24h, 7d) or a date (2030-01-31T10:00:00Z, or "2030-01-31 10:00", which is UTC).`

const listAuditHelp = `Each line is a change that a request has committed, or a request that berth refused with the status 403. "before" and "after" are the
generation or the revision of the object. A record appears about a second after the change. ` + auditTimesHelp

const exportAuditHelp = `Each line of the output is a JSON object with the sequence number, the hash and the record. The exit code is 0 only if the output is
complete. A terminal gets the escape sequences of JSON in place of control characters. ` + auditTimesHelp

const verifyAuditHelp = `Reads the whole log and computes the hash of each record anew. The exit code is 8 if a record was changed, deleted or inserted; the
message names the first such record. The command prints the head of the log, SEQUENCE:HASH. Keep the head outside the database and give it
to a later run with --head: only then does the command find out that somebody computed the whole chain anew or removed its newest records.`

// auditFilters binds the flags that select records. The result returns the query parameters.
func auditFilters(f *pflag.FlagSet) func(now time.Time) (url.Values, error) {
	words := map[string]*string{
		"project": f.String("project", "", "only requests of callers in the project with this ID"),
		"user":    f.String("user", "", "only requests of the user with this ID"),
		"object":  f.String("object", "", "only records about the object ID or TYPE/ID, for example port/ID"),
		"outcome": f.String("outcome", "", "only records with this outcome: success, denied or omitted"),
	}
	times := map[string]*string{
		"since": f.String("since", "", "only records since this time"),
		"until": f.String("until", "", "only records before this time"),
	}
	return func(now time.Time) (url.Values, error) {
		query := url.Values{}
		for name, word := range words {
			if *word != "" {
				query.Set(name, *word)
			}
		}
		for name, word := range times {
			if *word == "" {
				continue
			}
			at, err := parsePast(*word, now)
			if err != nil {
				return nil, err
			}
			query.Set(name, at.UTC().Format(time.RFC3339))
		}
		return query, nil
	}
}

// parsePast converts a duration before now, such as 24h or 7d, or a date to an instant.
func parsePast(word string, now time.Time) (time.Time, error) {
	if d, err := parseDuration(word); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04", "2006-01-02 15:04:05", time.DateOnly} {
		if at, err := time.Parse(layout, word); err == nil {
			return at, nil
		}
	}
	if parts := dateWithZone.FindStringSubmatch(word); parts != nil {
		return parseInZone(parts[1], parts[2])
	}
	return time.Time{}, cli.UsageError(
		`%q is not a time such as 90m, 24h, 7d, 2030-01-31T10:00:00Z or "2030-01-31 10:00"`,
		word,
	)
}

func listAudit(f *pflag.FlagSet) cli.Action {
	filters := auditFilters(f)
	limit := f.Int("limit", 50, "maximum number of records, at most 1000")
	marker := f.Int64("marker", 0, "list only records before the record with this sequence number")
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		query, err := filters(s.Now())
		if err != nil {
			return err
		}
		query.Set("limit", strconv.Itoa(*limit))
		if *marker != 0 {
			query.Set("marker", strconv.FormatInt(*marker, 10))
		}
		var page struct {
			Records []struct {
				Sequence int64
				Hash     string
				Record   cli.Object
			} `json:"audit_records"`
		}
		if err := s.API.Do(ctx, "GET", auditPath+"?"+query.Encode(), nil, &page); err != nil {
			return err
		}
		list := make([]cli.Object, len(page.Records))
		for i, r := range page.Records {
			list[i] = cli.Object{"sequence": r.Sequence, "hash": r.Hash}
			for name, value := range r.Record {
				list[i][name] = value
			}
		}
		return s.Output.PrintList(list, []string{
			"sequence",
			"at",
			"outcome",
			"user",
			"project",
			"method",
			"route",
			"object_type",
			"object_id",
			"before",
			"after",
			"address",
			"request_id",
		})
	}
}

func exportAudit(f *pflag.FlagSet) cli.Action {
	filters := auditFilters(f)
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		query, err := filters(s.Now())
		if err != nil {
			return err
		}
		to := s.Output.Stdout // the hash of a record covers the bytes that the API sends
		if terminal, ok := s.Output.Terminal(); ok {
			to = cli.JSONWriter(terminal)
		}
		return s.API.Copy(ctx, auditPath+"/export?"+query.Encode(), to)
	}
}

// verifyPage is the number of records that one request of the verification reads.
const verifyPage = "1000"

func verifyAudit(f *pflag.FlagSet) cli.Action {
	head := f.String("head", "", "SEQUENCE:HASH: the head of the log that an earlier run has printed")
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		v := auditlog.Verifier{}
		if *head != "" {
			p, err := auditlog.ParsePosition(*head)
			if err != nil {
				return cli.UsageError("--head: %s", err)
			}
			v.Remembered = &p
		}
		page, checked, err := verifyPages(ctx, s, &v)
		var broken *auditlog.Break
		switch {
		case errors.As(err, &broken):
			return cli.Errorf(
				cli.ExitBroken,
				"Find out who can write the tables audit_record and audit_chain, and compare the log with an earlier export.",
				"the audit log is broken at record %d: %s",
				broken.Sequence,
				broken,
			)
		case err != nil:
			return err
		}
		result := cli.Object{
			"records": checked,
			"anchor":  page.Anchor.String(),
			"head":    page.Head.String(),
			"waiting": page.Waiting,
		}
		return s.Output.PrintMessage(result, "%d records are intact; head %s", checked, page.Head)
	}
}

// verifyPages checks the pages of the log, and returns the last page and the number of records.
func verifyPages(
	ctx context.Context,
	s *cli.Session,
	v *auditlog.Verifier,
) (page auditlog.Page, checked int, err error) {
	query := url.Values{"order": {"asc"}, "limit": {verifyPage}}
	for {
		page = auditlog.Page{}
		if err := s.API.Do(ctx, "GET", auditPath+"?"+query.Encode(), nil, &page); err != nil {
			return page, checked, err
		}
		checked += len(page.Records)
		if err := v.Check(page); err != nil {
			return page, checked, err
		}
		if page.NextMarker == 0 {
			return page, checked, v.Finish(page)
		}
		query.Set("marker", strconv.FormatInt(page.NextMarker, 10))
	}
}
