package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

const demoFaults = 3

// root is where a stand-in takes commands: the address of the neighbour without a path.
func root(address string) string {
	u, err := url.Parse(address)
	if address == "" || err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// controller is the root of the controller.
func (d *stage) controller() string { return root(d.ODL.URL) }

// disturb tells the controller's stand-in to refuse a few requests. A real controller is left alone.
func (d *stage) disturb(ctx context.Context) error {
	root := d.controller()
	if root == "" {
		return nil
	}
	raw, ok, err := control(ctx, root+"/_control/log")
	if err != nil || !ok {
		return err
	}
	for _, r := range records(raw, "requests") {
		d.before = integer(r["n"])
	}
	a := newAPI(&settings{url: root})
	if err := a.do(ctx, "POST", "/_control/faults", demoFault, nil); err != nil {
		return fmt.Errorf("tell the controller's stand-in to fail: %w", err)
	}
	d.faults = demoFaults
	d.step("POST /_control/faults", "the controller is told to refuse the next %d networks with 503", demoFaults)
	return nil
}

// demoFault meets the creation of networks, which everything else of this run waits for.
var demoFault = object{"method": "POST", "type": "network", "status": 503, "times": demoFaults}

func (d *stage) playJournal(ctx context.Context) error {
	if d.ODL.URL == "" {
		d.step("", "BERTH_ODL_URL is not set here: what reached the controller is not checked")
	} else if d.faults == 0 {
		d.step("", "%s is no stand-in: no faults are injected, and its log cannot be checked", d.controller())
	}
	if err := d.mirrored(ctx); err != nil {
		return err
	}
	if d.faults == 0 {
		return nil
	}
	return d.inOrder(ctx)
}

// mirrored waits until the entries of this run's network, subnet and port are completed.
func (d *stage) mirrored(ctx context.Context) error {
	seen := map[string]string{}
	var mine []object
	err := d.until(ctx, patience, "the entries of network, subnet and port are completed", func(ctx context.Context) (bool, error) {
		var err error
		mine, err = d.recorded(ctx)
		if err != nil {
			return false, err
		}
		done := len(mine) >= 3
		for _, e := range mine {
			if e["state"] == "failed" {
				return false, broken("journal entry %v failed: %v", e["seq"], e["last_error"])
			}
			done = done && e["state"] == "completed"
			d.progress(seen, e)
		}
		return done, nil
	})
	if err != nil {
		return err
	}
	attempts := 0
	for _, e := range mine {
		d.entries = append(d.entries, fmt.Sprint(e["seq"]))
		attempts += int(integer(e["attempts"]))
	}
	if d.faults > 0 && attempts <= len(mine) {
		return broken("the controller refused %d requests, but %d entries took only %d attempts", d.faults, len(mine), attempts)
	}
	return nil
}

// recorded lists the entries of this run's network, subnet and port, oldest first.
func (d *stage) recorded(ctx context.Context) ([]object, error) {
	var mine []object
	for _, id := range []string{d.network, d.subnet, d.port.id} {
		all, err := entries.all(ctx, d.session, url.Values{"object": {id}, "order": {"asc"}})
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, broken("nothing was recorded of %s in the transaction that made it", id)
		}
		mine = append(mine, all...)
	}
	slices.SortFunc(mine, func(a, b object) int { return cmp.Compare(integer(a["seq"]), integer(b["seq"])) })
	return mine, nil
}

// progress tells what became of an entry since it was last seen.
func (d *stage) progress(seen map[string]string, e object) {
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
	d.step(cause, "entry %s: %v %v %v: %s", seq, e["operation"], e["object_type"], e["name"], now)
}

// inOrder checks what the controller saw: each object accepted once, parents first.
func (d *stage) inOrder(ctx context.Context) error {
	raw, _, err := control(ctx, fmt.Sprintf("%s/_control/log?after=%d", d.controller(), d.before))
	if err != nil {
		return err
	}
	var accepted []string
	refused := 0
	for _, r := range records(raw, "requests") {
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
		if status := integer(r["status"]); status >= 200 && status < 300 && r["method"] == "POST" {
			accepted = append(accepted, what)
		} else if status == 503 {
			refused++
		}
	}
	if !slices.Equal(accepted, []string{"network", "subnet", "port"}) {
		return broken("the controller should have taken network, subnet, port once each in this order, but took %s", strings.Join(accepted, ", "))
	}
	d.step("GET /_control/log", "the controller refused %d requests with 503, then took %s, each once", refused, strings.Join(accepted, ", "))
	return nil
}
