package resource

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

// Leases is the cli.Resource for Blazar's leases.
var Leases = &cli.Resource{
	Name:           "lease",
	Path:           "/reservation/v1/leases",
	SingularKey:    "lease",
	PluralKey:      "leases",
	IDKey:          "id",
	NameKey:        "name",
	IsID:           cli.IsUUID,
	IgnoresFilters: true,
	Parameters:     []string{"limit", "marker"},
	Columns:        []string{"id", "name", "status", "start_date", "end_date", "degraded"},
	Fields: []cli.Field{
		{
			Flag:    "name",
			Key:     "name",
			Help:    "new name",
			Parse:   cli.Text,
			OnlyFor: "set",
		},
		{
			Flag:  "start",
			Key:   "start_date",
			Help:  dateHelp,
			Parse: parseInstantFlag,
		},
		{
			Flag:  "end",
			Key:   "end_date",
			Help:  "end of the lease, in a format of --start",
			Parse: parseInstantFlag,
		},
		{
			Flag:  "before-end",
			Key:   "before_end_date",
			Help:  "time of the before_end_lease event, in a format of --start",
			Parse: parseInstantFlag,
		},
		{
			Flag:  "reservations",
			Key:   "reservations",
			Help:  "JSON list of reservations, instead of one reservation of hosts",
			Parse: cli.JSON,
		},
	},
}

const findSlotHelp = `Finds the earliest start between --start and --latest at which enough hosts are free for long enough, and prints these
hosts, or only their number if the caller may not see hosts. With --reservations it also searches for instances and floating
IPs. The command reserves nothing; to reserve, run ` + "`starter lease create`" + ` with the printed dates.`

var planColumns = []string{"name", "start_date", "end_date", "reservations"}

// printPlan prints which hosts or addresses a lease would get.
func printPlan(ctx context.Context, s *cli.Session, body cli.Object) error {
	var answer cli.Object
	if err := s.API.Do(ctx, "POST", "/reservation/v1/plans", body, &answer); err != nil {
		return err
	}
	o, ok := answer["plan"].(cli.Object)
	if !ok {
		return cli.Errorf(cli.ExitOther, "Is --url a berth API?",
			"POST /reservation/v1/plans answered without a plan")
	}
	if s.Output.Format == "table" {
		reservations, _ := cli.Objects(o["reservations"])
		for _, r := range reservations {
			for _, list := range []string{"hosts", "addresses"} {
				if r[list] != nil {
					r[list] = cli.Cell(r[list])
				}
			}
		}
	}
	return s.Output.PrintObject(o, planColumns)
}

// leaseFlags declares the flags for the hosts and the times of a lease. The function that leaseFlags returns
// makes the body of the request that creates the lease.
func leaseFlags(f *pflag.FlagSet) func(ctx context.Context, s *cli.Session, name string) (cli.Object, error) {
	given := cli.DeclareFields(f, Leases.Fields, "create")
	length := f.String("for", "", "duration of the lease, for example 90m, 2h or 3d, instead of --end")
	minimum := f.Int("min", 1, "minimum number of hosts")
	maximum := f.Int("max", 0, "maximum number of hosts (default: the value of --min)")
	hypervisor := f.String("hypervisor-properties", "",
		`filter for hosts, for example ["=", "$hypervisor_hostname", "cmp-1"]`)
	resource := f.String("resource-properties", "",
		`filter for host properties, for example ["=", "$rack", "r1"]`)
	return func(ctx context.Context, s *cli.Session, name string) (cli.Object, error) {
		body, err := given(ctx, s)
		if err != nil {
			return nil, err
		}
		body["name"] = name
		if body["start_date"] == nil {
			body["start_date"] = "now"
		}
		switch {
		case *length != "" && body["end_date"] != nil:
			return nil, cli.UsageError("--end and --for are mutually exclusive")
		case *length != "":
			if body["end_date"], err = endAfter(body["start_date"], *length, s.Now()); err != nil {
				return nil, err
			}
		case body["end_date"] == nil:
			return nil, cli.UsageError("--end or --for is missing")
		}
		if !f.Changed("max") {
			*maximum = *minimum
		}
		if body["reservations"] == nil {
			body["reservations"] = []cli.Object{
				{
					"resource_type":         "physical:host",
					"min":                   *minimum,
					"max":                   *maximum,
					"hypervisor_properties": *hypervisor,
					"resource_properties":   *resource,
				},
			}
		}
		return body, nil
	}
}

func createLease(f *pflag.FlagSet) cli.Action {
	body := leaseFlags(f)
	dryRun := f.Bool("dry-run", false, "only show which hosts the lease would get, or why it would fail")
	return func(ctx context.Context, s *cli.Session, args []string) error {
		b, err := body(ctx, s, args[0])
		if err != nil {
			return err
		}
		if *dryRun {
			return printPlan(ctx, s, b)
		}
		o, err := Leases.Create(ctx, s, b)
		if err != nil {
			return err
		}
		return s.Output.PrintObject(o, Leases.Columns)
	}
}

func findSlot(f *pflag.FlagSet) cli.Action {
	body := leaseFlags(f)
	latest := f.String("latest", "", "latest start, in a format of --start (default: 30 days after --start)")
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		b, err := body(ctx, s, "slot")
		if err != nil {
			return err
		}
		if b["latest_start"], err = latestStart(b["start_date"], strings.TrimSpace(*latest), s.Now()); err != nil {
			return err
		}
		return printPlan(ctx, s, b)
	}
}

// latestStart returns the latest date at which the lease may start.
func latestStart(start any, latest string, now time.Time) (any, error) {
	if latest == "" {
		return endAfter(start, "30d", now)
	}
	return parseInstant(latest, now)
}
