package demo

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"berth/starter/cli"
	"berth/starter/resource"
)

const faultCount = 3

// controllerURL is the URL of the controller without a path.
func (d *demonstration) controllerURL() string { return baseURL(d.ODL.URL) }

// injectFaults makes the stub of OpenDaylight reject a few requests. If the controller is not the stub of
// OpenDaylight, injectFaults does nothing.
func (d *demonstration) injectFaults(ctx context.Context) error {
	root := d.controllerURL()
	if root == "" {
		return nil
	}
	raw, ok, err := queryStandIn(ctx, root+"/_control/log")
	if err != nil || !ok {
		return err
	}
	for _, r := range listUnder(raw, "requests") {
		d.lastRequest = cli.Integer(r["n"])
	}
	a := cli.NewClient(root, "")
	if err := a.Do(ctx, "POST", "/_control/faults", networkFault, nil); err != nil {
		return fmt.Errorf("inject faults into the stub of OpenDaylight: %w", err)
	}
	d.injectedFaults = faultCount
	d.printStep("POST /_control/faults",
		"the controller will answer the next %d network requests with 503", faultCount)
	return nil
}

// networkFault is the fault that makes the stub of OpenDaylight reject the creation of networks. The journal
// entries of the subnet and the port that this run of the demo creates wait for the journal entry of the
// network.
var networkFault = cli.Object{
	"method": "POST",
	"type":   "network",
	"status": 503,
	"times":  faultCount,
}

func (d *demonstration) runJournal(ctx context.Context) error {
	if d.ODL.URL == "" {
		d.printStep("", "BERTH_ODL_URL is not set: the demo does not check the controller")
	} else if d.injectedFaults == 0 {
		d.printStep("", "%s is not the stub of OpenDaylight: the demo injects no faults and does not check its log", d.controllerURL())
	}
	if err := d.waitForEntries(ctx); err != nil {
		return err
	}
	if d.injectedFaults == 0 {
		return nil
	}
	return d.checkOrder(ctx)
}

// waitForEntries waits until the journal entries of the network, subnet and port that this run of the demo
// has created are completed.
func (d *demonstration) waitForEntries(ctx context.Context) error {
	seen := map[string]string{}
	var entries []cli.Object
	err := d.waitUntil(
		ctx,
		waitLimit,
		"the entries of network, subnet and port are completed",
		func(ctx context.Context) (bool, error) {
			var err error
			entries, err = d.listEntries(ctx)
			if err != nil {
				return false, err
			}
			done := len(entries) >= 3
			for _, e := range entries {
				if e["state"] == "failed" {
					return false, checkFailed("journal entry %v failed: %v", e["seq"], e["last_error"])
				}
				done = done && e["state"] == "completed"
				d.printProgress(seen, e)
			}
			return done, nil
		},
	)
	if err != nil {
		return err
	}
	attempts := 0
	for _, e := range entries {
		d.entries = append(d.entries, fmt.Sprint(e["seq"]))
		attempts += int(cli.Integer(e["attempts"]))
	}
	if d.injectedFaults > 0 && attempts <= len(entries) {
		return checkFailed("the controller rejected %d requests, but %d entries took only %d attempts",
			d.injectedFaults, len(entries), attempts)
	}
	return nil
}

// listEntries lists the journal entries of the network, subnet and port that this run of the demo has
// created, oldest first.
func (d *demonstration) listEntries(ctx context.Context) ([]cli.Object, error) {
	var entries []cli.Object
	for _, id := range []string{d.network, d.subnet, d.port.id} {
		all, err := resource.JournalEntries.List(ctx, d.Session, url.Values{"object": {id}, "order": {"asc"}})
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, checkFailed("%s has no journal entry", id)
		}
		entries = append(entries, all...)
	}
	slices.SortFunc(entries, func(a, b cli.Object) int {
		return cmp.Compare(cli.Integer(a["seq"]), cli.Integer(b["seq"]))
	})
	return entries, nil
}

// printProgress prints the state of a journal entry if the state has changed.
func (d *demonstration) printProgress(seen map[string]string, e cli.Object) {
	seq := fmt.Sprint(e["seq"])
	now := fmt.Sprintf("%v, attempt %v", e["state"], e["attempts"])
	if seen[seq] == now {
		return
	}
	seen[seq] = now
	cause := ""
	if message, _ := e["last_error"].(string); message != "" && e["state"] != "completed" {
		cause = message
	}
	d.printStep(cause, "entry %s: %v %v %v: %s", seq, e["operation"], e["object_type"], e["name"], now)
}

// checkOrder checks in the log of the stub of OpenDaylight that the controller accepted each object once, and
// accepted every parent object before its child objects.
func (d *demonstration) checkOrder(ctx context.Context) error {
	raw, _, err := queryStandIn(ctx,
		fmt.Sprintf("%s/_control/log?after=%d", d.controllerURL(), d.lastRequest))
	if err != nil {
		return err
	}
	var accepted []string
	rejected := 0
	for _, r := range listUnder(raw, "requests") {
		id := fmt.Sprint(r["id"])
		var what string
		switch id {
		case d.network:
			what = "network"
		case d.subnet:
			what = "subnet"
		case d.port.id:
			what = "port"
		default:
			continue
		}
		if status := cli.Integer(r["status"]); status >= 200 && status < 300 && r["method"] == "POST" {
			accepted = append(accepted, what)
		} else if status == 503 {
			rejected++
		}
	}
	if !slices.Equal(accepted, []string{"network", "subnet", "port"}) {
		return checkFailed(
			"the controller should have accepted network, subnet and port once each in this order, but accepted %s",
			strings.Join(accepted, ", "),
		)
	}
	d.printStep(
		"GET /_control/log", "the controller answered 503 to %d requests, then accepted %s, each once",
		rejected, strings.Join(accepted, ", "),
	)
	return nil
}
