package main

import (
	"cmp"
	"slices"

	"berth/bench/harness"
)

// costModel predicts the rate of an operation from the CPU time of the parts: each operation needs the same
// CPU time at every rate, and an idle deployment also needs some. The model knows nothing else: no disk, no
// lock, no network.
type costModel struct {
	idle map[string]float64 // cores that each part uses without load
	cost map[string]float64 // CPU time of an operation in each part, in milliseconds
}

// newCostModel computes the CPU time of an operation from a sample.
func newCostModel(idle map[string]float64, s harness.Sample) costModel {
	m := costModel{idle: idle, cost: map[string]float64{}}
	for name, used := range s.CPU.SecondsOfParts() {
		m.cost[name] = max(0, 1000*harness.Ratio(used-idle[name]*s.Seconds, float64(s.Count)))
	}
	return m
}

// rate returns the number of operations a second of servers that together have a number of cores.
func (m costModel) rate(cores float64) float64 {
	return max(0, 1000*harness.Ratio(cores-harness.SumOfParts(m.idle, harness.Servers), harness.SumOfParts(m.cost, harness.Servers)))
}

// rateOnMachine returns the number of operations a second of servers that together have a limited number of
// cores of a machine on which the client runs, too: on few cores, the client takes from the servers.
func (m costModel) rateOnMachine(limit, cores float64) float64 {
	shared := 1000 * harness.Ratio(cores-harness.SumOfParts(m.idle, harness.Parts), harness.SumOfParts(m.cost, harness.Parts))
	return max(0, min(m.rate(limit), shared))
}

// cores returns the number of cores that a part uses at a number of operations a second.
func (m costModel) cores(p harness.Part, rate float64) float64 {
	return m.idle[p.Name] + rate*m.cost[p.Name]/1000
}

// bottleneck returns the one of the parts that uses the most cores at a number of operations a second.
func (m costModel) bottleneck(among []harness.Part, rate float64) harness.Part {
	return slices.MaxFunc(among, func(a, b harness.Part) int { return cmp.Compare(m.cores(a, rate), m.cores(b, rate)) })
}
