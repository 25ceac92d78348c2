package harness

import (
	"fmt"
	"slices"
)

// Part is a part of a deployment whose CPU time is measured by itself.
type Part struct {
	Name       string // in the JSON file
	Title      string // in the tables
	Components []string
	// the client and the stubs are no part of a deployment, and their CPU time is not limited
	Client bool
	// One machine does all the work of the part. Every other part may have processes on any number of
	// machines.
	OneMachine bool
}

// Parts lists all parts in the order of the tables.
var Parts = []Part{
	{
		Name:       "api",
		Title:      "`api`",
		Components: []string{ComponentBerth + APIRoles},
	},
	{
		Name:       "relay,temporal",
		Title:      "`relay,temporal`",
		Components: []string{ComponentBerth + WorkerRoles},
	},
	{
		Name:       "postgres of berth",
		Title:      "berth's PostgreSQL",
		Components: []string{ComponentPostgres, ComponentPostgresBerth},
		OneMachine: true,
	},
	{
		Name:       "temporal",
		Title:      "Temporal",
		Components: []string{"server", "temporal"}, // the programs of the server and of the dev server
	},
	{
		Name:       "postgres of temporal",
		Title:      "Temporal's PostgreSQL",
		Components: []string{ComponentPostgresTemporal},
		OneMachine: true,
	},
	{
		Name:       "client",
		Title:      "client",
		Components: []string{ComponentBench, ComponentStubs},
		Client:     true,
	},
}

// Servers are the parts of a deployment, and Databases those of them that run on one machine each.
var (
	Servers   = partsWhere(func(p Part) bool { return !p.Client })
	Databases = partsWhere(func(p Part) bool { return p.OneMachine })
)

func partsWhere(keep func(Part) bool) []Part {
	return slices.DeleteFunc(slices.Clone(Parts), func(p Part) bool { return !keep(p) })
}

// CheckParts returns an error if a process of the stack belongs to no part, so that no CPU time is lost.
func (c CPUTimes) CheckParts() error {
	known := map[string]bool{}
	for _, p := range Parts {
		for _, component := range p.Components {
			known[component] = true
		}
	}
	for component := range c {
		if !known[component] {
			return fmt.Errorf("the process %q belongs to no part", component)
		}
	}
	return nil
}

// SecondsOfParts returns the seconds of CPU time of each part by its name.
func (c CPUTimes) SecondsOfParts() map[string]float64 {
	all := map[string]float64{}
	for _, p := range Parts {
		for _, component := range p.Components {
			all[p.Name] += c[component].Seconds()
		}
	}
	return all
}

// SumOfParts returns the sum of the values of parts, which have the names of the parts as keys.
func SumOfParts(values map[string]float64, of []Part) float64 {
	var total float64
	for _, p := range of {
		total += values[p.Name]
	}
	return total
}
