package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth/internal/contract"
	"berth/internal/server/servertest"
)

// check compares what berth has acknowledged with an observation, and returns all violations.
func check(l *ledger, w *observation) (findings []finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	findings = append(findings, l.findings...)
	for _, f := range []func(*ledger, *observation) []finding{
		checkPromises, checkNames, checkReports, checkControllerLog, checkController, checkUnfinished, checkOpenExecutions, checkAggregates, checkFailures,
	} {
		findings = append(findings, f(l, w)...)
	}
	return findings
}

// checkPromises checks that every acknowledged write is in the rows.
func checkPromises(l *ledger, w *observation) (findings []finding) {
	for _, key := range slices.Sorted(maps.Keys(l.promises)) {
		p := l.promises[key]
		r, exists := w.rows[key]
		at := p.at.Format("15:04:05.000")
		switch {
		case !exists && p.deletion == notDeleted:
			findings = append(findings,
				finding{lost, key, "acknowledged at " + at + ", but its row does not exist"})
		case exists && p.deletion == deleted:
			findings = append(findings, finding{
				lost,
				key,
				"its deletion was acknowledged at " + at + ", but its row exists with the status " + r.status,
			})
		case exists:
			for attribute, now := range map[string]string{"name": r.name, "host": r.host} {
				if v, ok := p.values[attribute]; ok && !v.allows(now) {
					findings = append(findings, finding{
						lost,
						key,
						fmt.Sprintf(
							"%s was acknowledged as %q at %s (possible are also %q), but the row has %q",
							attribute, v.acknowledged, at, v.possible, now,
						),
					})
				}
			}
		}
	}
	return findings
}

// checkNames checks that no two objects have the same name. If two objects had the same name, a request would
// have taken effect twice, because each request to create an object contains a unique name.
func checkNames(_ *ledger, w *observation) (findings []finding) {
	first := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(w.rows)) {
		name := w.rows[key].name
		if name == "" || name == "default" {
			continue
		}
		if other, ok := first[name]; ok {
			findings = append(findings, finding{
				doubled,
				key,
				"it has the same name as " + other + ", so one request has created two objects",
			})
		}
		first[name] = key
	}
	return findings
}

// checkReports checks that every acknowledged report has taken effect: a port for which all agents have
// reported is ACTIVE, and Nova has received the event network-vif-plugged for it.
func checkReports(l *ledger, w *observation) (findings []finding) {
	for _, key := range slices.Sorted(maps.Keys(l.promises)) {
		p := l.promises[key]
		r, exists := w.rows[key]
		if p.kind != "port" || !exists || !p.isReported() {
			continue
		}
		switch {
		case r.status != "ACTIVE" || len(r.blocks) > 0:
			findings = append(findings, finding{
				lost,
				key,
				fmt.Sprintf(
					"reports of both agents for host %s were acknowledged until %s, but its status is %s and it waits for %v",
					r.host, p.at.Format("15:04:05.000"), r.status, r.blocks,
				),
			})
		case w.plugged[p.id] == 0:
			findings = append(findings,
				finding{lost, key, "it is ACTIVE, but Nova never received network-vif-plugged"})
		}
	}
	return findings
}

// checkControllerLog checks the order of the requests that the controller applied, and that the controller
// got each revision of an object only once.
func checkControllerLog(_ *ledger, w *observation) (findings []finding) {
	for _, v := range w.violations {
		findings = append(findings, finding{outOfOrder, "controller", v})
	}
	newest := map[string]int64{}
	for _, r := range w.requests {
		key := r.Type + "/" + r.ID
		switch {
		case !r.Applied || r.ID == servertest.Canary:
		case r.Method == "DELETE":
			delete(newest, key)
		case r.Revision != 0 && r.Revision < newest[key]:
			findings = append(findings, finding{
				outOfOrder,
				key,
				fmt.Sprintf(
					"the controller received revision %d after revision %d", r.Revision, newest[key],
				),
			})
		case r.Revision != 0 && r.Revision == newest[key]:
			findings = append(findings, finding{
				doubled,
				key,
				fmt.Sprintf(
					"the controller applied revision %d twice (request %d)", r.Revision, r.Number,
				),
			})
		default:
			newest[key] = r.Revision
		}
	}
	return findings
}

// checkController checks that the controller has the same objects as the rows.
func checkController(_ *ledger, w *observation) (findings []finding) {
	for _, key := range slices.Sorted(maps.Keys(w.rows)) {
		r := w.rows[key]
		if strings.HasPrefix(key, "lease/") {
			continue
		}
		if name, ok := w.mirrored[key]; !ok {
			findings = append(findings, finding{drifted, key, "the controller does not have the object"})
		} else if name != r.name && r.name != "" {
			findings = append(findings, finding{drifted, key, fmt.Sprintf("the controller has the name %q, but the row has the name %q", name, r.name)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.mirrored)) {
		if _, ok := w.rows[key]; !ok {
			findings = append(findings,
				finding{drifted, key, "the controller has the object, but the object has no row"})
		}
	}
	return findings
}

// checkUnfinished checks that no work is left, and that every metric in driftGauges is 0.
func checkUnfinished(_ *ledger, w *observation) (findings []finding) {
	for _, u := range w.unfinished {
		object, detail, _ := strings.Cut(u, ":")
		findings = append(findings, finding{stuck, object, detail})
	}
	for name, value := range w.gauges {
		if value != 0 {
			findings = append(findings,
				finding{drifted, name, fmt.Sprintf("the metric is %g, expected 0", value)})
		}
	}
	return findings
}

// checkOpenExecutions checks that every object whose work is not finished has an open execution, that no
// other object has one, and that the search attributes have the values of the rows.
func checkOpenExecutions(_ *ledger, w *observation) (findings []finding) {
	expected := map[string]string{}
	for key, r := range w.rows {
		kind, id, _ := strings.Cut(key, "/")
		switch {
		case kind == "port":
			expected[contract.PortID(id)] = key
		case kind == "lease" && r.status != endedLease:
			expected[contract.LeaseID(id)] = key
		}
	}
	for _, id := range slices.Sorted(maps.Keys(expected)) {
		e, ok := w.executions[id]
		r := w.rows[expected[id]]
		switch {
		case !ok:
			findings = append(findings, finding{drifted, id, "its row exists, but it has no open execution"})
		case e.kind == contract.Port && e.status != r.status:
			findings = append(findings, finding{
				drifted,
				id,
				fmt.Sprintf(
					"the search attribute BerthStatus is %q, but the row has the status %q",
					e.status,
					r.status,
				),
			})
		case e.kind == contract.Port && e.host != r.host:
			findings = append(findings, finding{
				drifted,
				id,
				fmt.Sprintf(
					"the search attribute BerthHost is %q, but the row has the host %q",
					e.host,
					r.host,
				),
			})
		}
	}
	kinds := []string{
		contract.Port,
		contract.Lease,
		contract.JournalEntry,
		contract.Pool,
		contract.AgentNotifications,
	}
	for _, id := range slices.Sorted(maps.Keys(w.executions)) {
		kind := w.executions[id].kind
		if _, ok := expected[id]; !ok && slices.Contains(kinds, kind) {
			findings = append(
				findings,
				finding{drifted, id, "it is an open execution of the type " + kind + ", but no row needs it"},
			)
		}
	}
	return findings
}

// checkAggregates checks that every host is in Nova's aggregate freepool and that Nova has no other
// aggregate. If a lease has not ended yet, checkAggregates checks nothing.
func checkAggregates(_ *ledger, w *observation) (findings []finding) {
	for key, r := range w.rows {
		if strings.HasPrefix(key, "lease/") && r.status != endedLease {
			return nil // the lease may have hosts in an aggregate of its own
		}
	}
	for _, a := range w.aggregates {
		slices.Sort(a.Hosts)
		switch {
		case a.Name != "freepool":
			findings = append(findings, finding{
				drifted,
				"aggregate " + a.Name,
				fmt.Sprintf("no lease runs, but Nova has the aggregate with the hosts %v", a.Hosts),
			})
		case !slices.Equal(a.Hosts, w.servers):
			findings = append(findings, finding{
				drifted,
				"aggregate freepool",
				fmt.Sprintf(
					"no lease runs, but the aggregate has the hosts %v, expected %v",
					a.Hosts,
					w.servers,
				),
			})
		}
	}
	return findings
}

// checkFailures checks that no process has panicked and that no workflow has failed.
func checkFailures(_ *ledger, w *observation) (findings []finding) {
	for _, out := range w.crashes {
		i := max(strings.Index(out, "panic:"), strings.Index(out, "fatal error:"), 0)
		findings = append(findings, finding{crashed, "process", out[i:min(len(out), i+2000)]})
	}
	for _, id := range w.failed {
		findings = append(findings, finding{crashed, "workflow", id})
	}
	return findings
}
