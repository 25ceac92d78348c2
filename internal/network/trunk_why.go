package network

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxNamedPorts is the maximum number of ports that the explanation of a trunk lists.
const maxNamedPorts = 3

// TrunkReason explains why a trunk is not ACTIVE, without regard to the trunk's own blocks. TrunkReason names
// the ports on which TrunkStatus bases the status: failed bindings first, then ports in ERROR, then the other
// ports that are not ACTIVE. It returns an empty string if no port keeps the trunk from becoming ACTIVE.
func TrunkReason(parent TrunkPort, subports []TrunkPort) string {
	switch {
	case !parent.AdminUp:
		return fmt.Sprintf("its parent port %s is administratively down", parent.ID)
	case parent.VIF == VIFUnbound:
		return fmt.Sprintf("its parent port %s is not bound to a host", parent.ID)
	}
	var all []trunkObstacle
	add := func(role string, p TrunkPort) {
		switch {
		case p.VIF == VIFFailed:
			all = append(all, trunkObstacle{0, role, p})
		case p.Status == Errored:
			all = append(all, trunkObstacle{1, role, p})
		case p.AdminUp && p.Status != Active:
			all = append(all, trunkObstacle{2, role, p})
		}
	}
	add("parent port", parent)
	for _, p := range subports {
		add("subport", p)
	}
	slices.SortStableFunc(all, func(a, b trunkObstacle) int { return cmp.Compare(a.rank, b.rank) })
	var texts []string
	for _, o := range all[:min(len(all), maxNamedPorts)] {
		texts = append(texts, o.text())
	}
	if more := len(all) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("%d more of its ports are not %s", more, Active))
	}
	return strings.Join(texts, "; ")
}

// trunkObstacle is a port that keeps its trunk from becoming ACTIVE.
type trunkObstacle struct {
	rank int    // the most serious first
	role string // of the port in the trunk
	TrunkPort
}

func (o trunkObstacle) text() string {
	if o.VIF == VIFFailed {
		return fmt.Sprintf("the binding of its %s %s failed", o.role, o.ID)
	}
	return fmt.Sprintf("its %s %s is %s", o.role, o.ID, o.Status)
}

// Redacted returns the trunk without the names of hosts, for clients that must not see them.
func (t Trunk) Redacted() Trunk {
	t.Blocks = redactBlocks(t.Blocks)
	return t
}

// StatusViewAt returns a snapshot of the trunk for a reader at the time `now`, with the same sentences that
// the snapshot of a port has.
func (t Trunk) StatusViewAt(now time.Time) StatusView {
	return StatusView{
		Name:    t.Name,
		Project: t.Project,
		Status:  t.Status,
		Reason:  t.Reason,
		Waiting: waitingFor(t.Blocks, now),
	}
}
