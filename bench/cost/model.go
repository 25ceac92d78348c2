package main

import (
	"cmp"
	"fmt"
	"slices"

	"berth/bench/harness"
)

// component is a part of a deployment whose CPU time is measured by itself.
type component struct {
	name  string   // in the JSON file
	title string   // in the tables
	parts []string // components of the harness
	// the client and the stubs are no part of a deployment, and their CPU time is not limited
	client bool
	// One machine does all the work of the component. Every other component may have processes on any number
	// of machines.
	oneMachine bool
}

// components lists all components in the order of the tables.
var components = []component{
	{
		name:  "api",
		title: "`api`",
		parts: []string{harness.ComponentBerth + harness.APIRoles},
	},
	{
		name:  "relay,temporal",
		title: "`relay,temporal`",
		parts: []string{harness.ComponentBerth + harness.WorkerRoles},
	},
	{
		name:       "postgres of berth",
		title:      "berth's PostgreSQL",
		parts:      []string{harness.ComponentPostgres, harness.ComponentPostgresBerth},
		oneMachine: true,
	},
	{
		name:  "temporal",
		title: "Temporal",
		parts: []string{"server", "temporal"}, // the programs of the server and of the dev server
	},
	{
		name:       "postgres of temporal",
		title:      "Temporal's PostgreSQL",
		parts:      []string{harness.ComponentPostgresTemporal},
		oneMachine: true,
	},
	{
		name:   "client",
		title:  "client",
		parts:  []string{harness.ComponentBench, harness.ComponentStubs},
		client: true,
	},
}

// checkComponents returns an error if a process of the stack belongs to no component, so that no CPU time is
// lost.
func checkComponents(used harness.CPUTimes) error {
	known := map[string]bool{}
	for _, c := range components {
		for _, part := range c.parts {
			known[part] = true
		}
	}
	for part := range used {
		if !known[part] {
			return fmt.Errorf("the process %q belongs to no component", part)
		}
	}
	return nil
}

// byComponent returns the seconds of CPU time of each component.
func byComponent(used harness.CPUTimes) map[string]float64 {
	all := map[string]float64{}
	for _, c := range components {
		for _, part := range c.parts {
			all[c.name] += used[part].Seconds()
		}
	}
	return all
}

// costModel predicts the rate of an operation from the CPU time of the components: each operation needs the
// same CPU time at every rate, and an idle deployment also needs some. The model knows nothing else: no disk,
// no lock, no network.
type costModel struct {
	idle map[string]float64 // cores that each component uses without load
	cost map[string]float64 // CPU time of an operation in each component, in milliseconds
}

// newCostModel computes the CPU time of an operation from a sample.
func newCostModel(idle map[string]float64, s harness.Sample) costModel {
	m := costModel{idle: idle, cost: map[string]float64{}}
	for name, used := range byComponent(s.CPU) {
		m.cost[name] = max(0, 1000*harness.Ratio(used-idle[name]*s.Seconds, float64(s.Count)))
	}
	return m
}

// rate returns the number of operations a second of servers that together have a number of cores.
func (m costModel) rate(cores float64) float64 {
	return max(0, 1000*harness.Ratio(cores-sum(m.idle, servers), sum(m.cost, servers)))
}

// rateOnMachine returns the number of operations a second of servers that together have a limited number of
// cores of a machine on which the client runs, too: on few cores, the client takes from the servers.
func (m costModel) rateOnMachine(limit, cores float64) float64 {
	shared := 1000 * harness.Ratio(cores-sum(m.idle, components), sum(m.cost, components))
	return max(0, min(m.rate(limit), shared))
}

// cores returns the number of cores that a component uses at a number of operations a second.
func (m costModel) cores(c component, rate float64) float64 {
	return m.idle[c.name] + rate*m.cost[c.name]/1000
}

// bottleneck returns the one of the components that uses the most cores at a number of operations a second.
func (m costModel) bottleneck(among []component, rate float64) component {
	return slices.MaxFunc(among, func(a, b component) int { return cmp.Compare(m.cores(a, rate), m.cores(b, rate)) })
}

// servers are the components of a deployment, and databases those of them that run on one machine each.
var (
	servers   = where(func(c component) bool { return !c.client })
	databases = where(func(c component) bool { return c.oneMachine })
)

func where(keep func(component) bool) []component {
	return slices.DeleteFunc(slices.Clone(components), func(c component) bool { return !keep(c) })
}

func sum(values map[string]float64, of []component) float64 {
	var total float64
	for _, c := range of {
		total += values[c.name]
	}
	return total
}
