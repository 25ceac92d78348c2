package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"berth/internal/contract"
)

// debtor is what is known of who owes a port its word.
type debtor struct {
	For      string     `json:"for"`
	Sentence string     `json:"sentence"`
	Agent    string     `json:"agent,omitempty"` // its ID
	Heard    *time.Time `json:"last_report,omitempty"`
}

// dhcpAgent is the type of the agents that owe DHCP.
const dhcpAgent = "DHCP agent"

// debtors are the agents for whose word a port waits, each with the age of its last report, and where there is none, that.
// A caller who may not see agents sees none.
func debtors(ctx context.Context, s *session, n *noun, id string, w contract.Why) []debtor {
	if n != ports || len(w.Waiting) == 0 && w.State != active {
		return nil
	}
	port, err := n.get(ctx, s, id)
	if err != nil {
		return nil
	}
	all := doubts(port, w)
	for _, party := range w.Waiting {
		switch entity := party.For; {
		case strings.HasPrefix(entity, "DHCP"):
			all = append(all, dhcpDebtors(ctx, s, port, entity)...)
		case strings.HasPrefix(entity, "L2"):
			all = append(all, wiringDebtors(ctx, s, port, entity)...)
		}
	}
	return all
}

const active = "ACTIVE"

// doubts is what the API says of an ACTIVE port whose agent has fallen silent since its workflow looked: nobody would tell of an unplug.
func doubts(port object, w contract.Why) []debtor {
	sentence := why(port)
	if port["status"] != active || w.State != active || sentence == "" || sentence == active || strings.Contains(w.Sentence, sentence) {
		return nil
	}
	return []debtor{{For: "L2", Sentence: sentence}}
}

func dhcpDebtors(ctx context.Context, s *session, port object, entity string) []debtor {
	network, _ := port["network_id"].(string)
	var answer object
	if err := s.api.do(ctx, "GET", networks.at(url.PathEscape(network))+"/dhcp-agents", nil, &answer); err != nil {
		return nil
	}
	found, _ := objects(answer[agents.many])
	return debts(entity, found, "no DHCP agent serves its network")
}

func wiringDebtors(ctx context.Context, s *session, port object, entity string) []debtor {
	host, _ := port["binding:host_id"].(string)
	if host == "" {
		return []debtor{{For: entity, Sentence: "it is on no host, so that no agent can report"}}
	}
	found, err := agents.all(ctx, s, url.Values{"host": {host}})
	if err != nil {
		return nil
	}
	found = slices.DeleteFunc(found, func(a object) bool { return a["agent_type"] == dhcpAgent })
	return debts(entity, found, "no agent that wires ports has ever reported on "+host)
}

// debts says of each agent who and how old it is.
func debts(entity string, found []object, none string) []debtor {
	if len(found) == 0 {
		return []debtor{{For: entity, Sentence: none}}
	}
	var all []debtor
	for _, a := range found {
		id, _ := a["id"].(string)
		d := debtor{For: entity, Agent: id, Sentence: fmt.Sprintf("%v on %v", a["agent_type"], a["host"])}
		word, _ := a["heartbeat_timestamp"].(string)
		if heard, err := time.Parse("2006-01-02 15:04:05", strings.TrimSpace(word)); err == nil {
			d.Heard = &heard
			d.Sentence += fmt.Sprintf(", which reported %s ago", time.Since(heard).Round(time.Second))
		}
		switch {
		case a["admin_state_up"] == false:
			d.Sentence += " and is disabled"
		case a["alive"] == false:
			d.Sentence += " and has fallen silent"
		}
		all = append(all, d)
	}
	return all
}
