package diagnosis

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"berth/internal/contract"
	"berth/starter/cli"
	"berth/starter/resource"
)

// blockingAgent is an agent whose report a port waits for, or the reason why no such agent exists, or the
// warning that the L2 agent of an ACTIVE port is silent.
type blockingAgent struct {
	For      string `json:"for"`
	Sentence string `json:"sentence"`
	// ID of the agent; empty if no such agent exists, and in a warning
	Agent      string     `json:"agent,omitempty"`
	LastReport *time.Time `json:"last_report,omitempty"`
}

// dhcpAgent is the type of the agents that provision DHCP.
const dhcpAgent = "DHCP agent"

// blockingAgents lists the agents that a port waits for, with the age of their last heartbeats. The list is
// empty if the caller may not list agents.
func blockingAgents(
	ctx context.Context,
	s *cli.Session,
	r *cli.Resource,
	id string,
	w contract.Why,
) []blockingAgent {
	if r != resource.Ports || len(w.Waiting) == 0 && w.State != activeStatus {
		return nil
	}
	port, err := r.Get(ctx, s, id)
	if err != nil {
		return nil
	}
	all := silentAgentWarning(port, w)
	for _, party := range w.Waiting {
		switch entity := party.For; {
		case strings.HasPrefix(entity, "DHCP"):
			all = append(all, blockingDHCPAgents(ctx, s, port, entity)...)
		case strings.HasPrefix(entity, "L2"):
			all = append(all, blockingL2Agents(ctx, s, port, entity)...)
		}
	}
	return all
}

const activeStatus = "ACTIVE"

// silentAgentWarning returns the API's warning for an ACTIVE port whose agent stopped sending heartbeats
// after the workflow last checked the agent. Such an agent cannot report that a device is unplugged.
func silentAgentWarning(port cli.Object, w contract.Why) []blockingAgent {
	sentence := resource.Sentence(port)
	if port["status"] != activeStatus || w.State != activeStatus || sentence == "" ||
		sentence == activeStatus ||
		strings.Contains(w.Sentence, sentence) {
		return nil
	}
	return []blockingAgent{{For: "L2", Sentence: sentence}}
}

// blockingDHCPAgents describes the DHCP agents that serve the network of the port.
func blockingDHCPAgents(ctx context.Context, s *cli.Session, port cli.Object, entity string) []blockingAgent {
	network, _ := port["network_id"].(string)
	var answer cli.Object
	if err := s.API.Do(ctx, "GET", resource.Networks.ObjectPath(url.PathEscape(network))+"/dhcp-agents", nil, &answer); err != nil {
		return nil
	}
	found, _ := cli.Objects(answer[resource.Agents.PluralKey])
	return describeAgents(entity, found, "no DHCP agent serves the network of the port", s.Now())
}

// blockingL2Agents describes the L2 agents on the host of the port.
func blockingL2Agents(ctx context.Context, s *cli.Session, port cli.Object, entity string) []blockingAgent {
	host, _ := port["binding:host_id"].(string)
	if host == "" {
		return []blockingAgent{{For: entity, Sentence: "the port has no host, so no agent can provision it"}}
	}
	found, err := resource.Agents.List(ctx, s, url.Values{"host": {host}})
	if err != nil {
		return nil
	}
	found = slices.DeleteFunc(found, func(a cli.Object) bool { return a["agent_type"] == dhcpAgent })
	return describeAgents(entity, found, "no L2 agent has ever sent a heartbeat from host "+host, s.Now())
}

// describeAgents makes one sentence for each agent, or returns the sentence in the parameter `none` if there
// are no agents.
func describeAgents(entity string, found []cli.Object, none string, now time.Time) []blockingAgent {
	if len(found) == 0 {
		return []blockingAgent{{For: entity, Sentence: none}}
	}
	var all []blockingAgent
	for _, a := range found {
		id, _ := a["id"].(string)
		d := blockingAgent{
			For:      entity,
			Agent:    id,
			Sentence: fmt.Sprintf("%v on %v", a["agent_type"], a["host"]),
		}
		word, _ := a["heartbeat_timestamp"].(string)
		if heard, err := time.Parse("2006-01-02 15:04:05", strings.TrimSpace(word)); err == nil {
			d.LastReport = &heard
			d.Sentence += fmt.Sprintf(", last heartbeat %s ago", now.Sub(heard).Round(time.Second))
		}
		switch {
		case a["admin_state_up"] == false:
			d.Sentence += ", disabled"
		case a["alive"] == false:
			d.Sentence += ", no longer alive"
		}
		all = append(all, d)
	}
	return all
}
