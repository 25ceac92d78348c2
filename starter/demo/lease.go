package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"berth/starter/cli"
	"berth/starter/resource"
)

func (d *demonstration) runLease(ctx context.Context) error {
	host, provider, err := d.createHost(ctx)
	if err != nil {
		return err
	}
	start := time.Now().Add(3 * time.Second).Truncate(time.Second)
	end := start.Add(3 * time.Second)
	o, err := resource.Leases.Create(ctx, d.Session, cli.Object{
		"name":       d.uniqueName("lease"),
		"start_date": resource.FormatSecond(start),
		"end_date":   resource.FormatSecond(end),
		"events":     []cli.Object{},
		"reservations": []cli.Object{
			{
				"resource_type":         "physical:host",
				"min":                   1,
				"max":                   1,
				"resource_properties":   "",
				"hypervisor_properties": fmt.Sprintf(`["=", "$hypervisor_hostname", "%s"]`, host),
			},
		},
	})
	if err != nil {
		return err
	}
	d.lease = fmt.Sprint(o["id"])
	v := newLeaseView(o)
	d.printStep("POST /reservation/v1/leases", "lease %s from %s to %s is created",
		o["name"], start.Local().Format("15:04:05"), end.Local().Format("15:04:05"))
	d.printStep("", "%s", v)
	if len(v.reservations) != 1 || v.reservation == "" {
		return checkFailed("the lease has %d reservations instead of one", len(v.reservations))
	}
	if err := d.checkAllocation(ctx, v, provider); err != nil {
		return err
	}
	limit := time.Until(end) + waitLimit
	return d.waitUntil(ctx, limit, "the lease is TERMINATED", func(ctx context.Context) (bool, error) {
		return d.observeLease(ctx, &v, provider)
	})
}

// observeLease reads the lease. If the lease has changed since the last call, observeLease prints the change
// and checks the statuses of the lease.
func (d *demonstration) observeLease(
	ctx context.Context,
	v *leaseView,
	provider string,
) (done bool, err error) {
	o, err := resource.Leases.Get(ctx, d.Session, d.lease)
	if err != nil {
		return false, err
	}
	now := newLeaseView(o)
	if now.String() == v.String() {
		return false, nil
	}
	causes := map[string]string{
		"STARTING":    "start timer",
		"ACTIVE":      "its reservation started",
		"TERMINATING": "end timer",
		"TERMINATED":  "its reservation ended",
	}
	cause := causes[now.status]
	if now.status == v.status {
		cause = "event timer"
	}
	d.printStep(cause, "%s", now)
	before := *v
	*v = now
	if err := now.check(); err != nil {
		return false, err
	}
	if now.status == before.status {
		return false, nil
	}
	switch now.status {
	case "ACTIVE":
		err = d.checkDelay(now, "start_lease")
	case "TERMINATED":
		err = d.checkDelay(now, "end_lease")
		done = true
	default:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return done, d.checkAllocation(ctx, now, provider)
}

// maxDelay is the longest accepted delay of a lease event. maxDelay is long, because the machine that runs
// the demo may be busy.
const maxDelay = 15 * time.Second

// checkDelay checks and prints the delay of a lease event. checkDelay measures the delay of a lease event
// with the clock of the database.
func (d *demonstration) checkDelay(v leaseView, event string) error {
	due, err := time.Parse("2006-01-02T15:04:05.000000", v.due[event])
	if err != nil {
		return checkFailed("the time of %s is %q", event, v.due[event])
	}
	done, err := time.Parse("2006-01-02 15:04:05.999999", v.updated[event])
	if err != nil {
		return checkFailed("the updated_at of %s is %q", event, v.updated[event])
	}
	delay := done.Sub(due)
	switch {
	case delay < 0 || delay >= maxDelay:
		return checkFailed("%s was due at %s and done %s later", event, due.Format("15:04:05"), delay)
	case delay >= time.Second:
		d.printStep("this machine is busy",
			"%s was done %s after its time", event, delay.Round(time.Millisecond))
	default:
		d.printStep("", "%s was done %d ms after its time", event, delay.Milliseconds())
	}
	return nil
}

// checkAllocation checks that the reservation has a Placement allocation on the reserved host while the lease
// is ACTIVE, and has no allocation while the lease has another status.
func (d *demonstration) checkAllocation(ctx context.Context, v leaseView, provider string) error {
	o, err := resource.ConsumerAllocations(ctx, d.Session, v.reservation)
	if err != nil {
		return err
	}
	allocations, _ := o["allocations"].(cli.Object)
	var providers []string
	for id := range allocations {
		p, err := resource.Providers.Get(ctx, d.Session, id)
		if err != nil {
			return err
		}
		providers = append(providers, fmt.Sprint(p["name"]))
	}
	wanted := []string{}
	if v.status == "ACTIVE" {
		wanted = []string{provider}
	}
	after, err := resource.Leases.Get(ctx, d.Session, d.lease)
	if err != nil || after["status"] != v.status {
		return err // the lease has changed since the first read
	}
	if len(providers) != len(wanted) || len(providers) == 1 && providers[0] != provider {
		return checkFailed(
			"while the lease is %s its reservation should have allocations on %v but has them on %v",
			v.status, wanted, providers,
		)
	}
	if v.status == "ACTIVE" {
		raw, _ := json.Marshal(allocations)
		d.printStep("GET /placement/allocations/{reservation}",
			"the reservation has an allocation on provider %s: %s", provider, raw)
		return nil
	}
	d.printStep("GET /placement/allocations/{reservation}", "the reservation has no allocation")
	return nil
}

// createHost creates a resource provider with an inventory, and registers the host of this provider for
// leases.
func (d *demonstration) createHost(ctx context.Context) (host, reserved string, err error) {
	host = d.uniqueName("node")
	o, err := resource.Providers.Create(ctx, d.Session, cli.Object{"name": host})
	if err != nil {
		return "", "", err
	}
	if err := resource.SetInventories(ctx, d.Session, fmt.Sprint(o["uuid"]), cli.Integer(o["generation"]), cli.Object{"VCPU": 16, "MEMORY_MB": 65536, "DISK_GB": 500}); err != nil {
		return "", "", err
	}
	d.printStep("POST /placement/resource_providers, PUT …/inventories",
		"provider %s has 16 VCPU, 65536 MEMORY_MB, 500 DISK_GB", host)
	if o, err = resource.Hosts.Create(ctx, d.Session, cli.Object{"name": host}); err != nil {
		return "", "", err
	}
	d.printStep("POST /reservation/v1/os-hosts",
		"host %s is registered for leases, with ID %s", host, o["id"])
	return host, "blazar_" + host, nil
}
