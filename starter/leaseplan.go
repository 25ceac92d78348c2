package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

const slotHelp = `Tells the earliest start, from --start and not after --latest, at which as many hosts are free for long enough,
and which they would be; the same for instances and floating IPs with --reservations. Nothing is reserved: ` + "`starter lease create`" + `
with these dates does that.`

var planColumns = []string{"name", "start_date", "end_date", "reservations"}

// plan asks what a lease would get.
func plan(ctx context.Context, s *session, body object) error {
	var answer object
	if err := s.api.do(ctx, "POST", "/reservation/v1/plans", body, &answer); err != nil {
		return err
	}
	o, ok := answer["plan"].(object)
	if !ok {
		return fail(exitOther, "Is --url a berth API?", "POST /reservation/v1/plans answered without a plan")
	}
	if s.out.format == "table" {
		reservations, _ := objects(o["reservations"])
		for _, r := range reservations {
			for _, list := range []string{"hosts", "addresses"} {
				if r[list] != nil {
					r[list] = cell(r[list])
				}
			}
		}
	}
	return s.out.show(o, planColumns)
}

// wanted declares the flags that say which hosts for how long, and returns what makes the body of a lease of them.
func wanted(f *pflag.FlagSet) func(ctx context.Context, s *session, name string) (object, error) {
	given := declare(f, leases.fields, "create")
	length := f.String("for", "", "how long, as 90m, 2h or 3d, instead of --end")
	least := f.Int("min", 1, "fewest hosts that are enough")
	most := f.Int("max", 0, "most hosts to reserve (default: as --min)")
	hypervisor := f.String("hypervisor-properties", "", `which hosts, as ["=", "$hypervisor_hostname", "cmp-1"]`)
	resource := f.String("resource-properties", "", `which hosts, as ["=", "$rack", "r1"]`)
	return func(ctx context.Context, s *session, name string) (object, error) {
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
			return nil, usage("--end and --for are one too many")
		case *length != "":
			if body["end_date"], err = endOf(body["start_date"], *length, time.Now()); err != nil {
				return nil, err
			}
		case body["end_date"] == nil:
			return nil, usage("--end is missing, or --for")
		}
		if !f.Changed("max") {
			*most = *least
		}
		if body["reservations"] == nil {
			body["reservations"] = []object{{"resource_type": "physical:host", "min": *least, "max": *most,
				"hypervisor_properties": *hypervisor, "resource_properties": *resource}}
		}
		return body, nil
	}
}

// endOf is so much later than a start.
func endOf(start any, length string, now time.Time) (string, error) {
	d, err := duration(length)
	if err != nil {
		return "", err
	}
	word, _ := start.(string)
	at, err := startOf(word, now)
	return second(at.Add(d)), err
}

// startOf is the instant of a date in one of the API's forms.
func startOf(word string, now time.Time) (time.Time, error) {
	if word == "now" {
		return now, nil
	}
	for _, form := range []string{time.RFC3339, "2006-1-2 15:4"} {
		if at, err := time.Parse(form, word); err == nil {
			return at, nil
		}
	}
	return now, usage("--for needs a --start such as now, +30s, \"2030-01-31 10:00\" (UTC) or 2030-01-31T10:00:00Z, not %q", word)
}

func leaseCreate(f *pflag.FlagSet) action {
	body := wanted(f)
	dry := f.Bool("dry-run", false, "only tell which hosts it would get, or why not")
	return func(ctx context.Context, s *session, args []string) error {
		b, err := body(ctx, s, args[0])
		if err != nil {
			return err
		}
		if *dry {
			return plan(ctx, s, b)
		}
		o, err := leases.create(ctx, s, b)
		if err != nil {
			return err
		}
		return s.out.show(o, leases.columns)
	}
}

func findSlot(f *pflag.FlagSet) action {
	body := wanted(f)
	latest := f.String("latest", "", "the last start to look at, as --start (default: 30 days after that)")
	return func(ctx context.Context, s *session, _ []string) error {
		b, err := body(ctx, s, "slot")
		if err != nil {
			return err
		}
		if b["latest_start"], err = latestOf(b["start_date"], strings.TrimSpace(*latest), time.Now()); err != nil {
			return err
		}
		return plan(ctx, s, b)
	}
}

// latestOf is the last start to look at.
func latestOf(start any, latest string, now time.Time) (any, error) {
	if latest == "" {
		return endOf(start, "30d", now)
	}
	return instantAt(latest, now)
}
