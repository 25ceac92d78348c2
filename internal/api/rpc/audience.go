package rpc

import (
	"context"
	"slices"
	"strings"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/store/agentstore"
)

// audience says in which virtual hosts of RabbitMQ a message is published. The virtual host of
// BERTH_RABBITMQ_URL may have agents of all hosts, so every message about a port goes there in full.
type audience struct {
	main   bool     // the virtual host of BERTH_RABBITMQ_URL
	hosts  []string // the registered virtual hosts of these hosts
	others bool     // all registered virtual hosts but those of `hosts`, instead of those of `hosts`
}

// everyone is the audience of messages that every host may read.
var everyone = audience{main: true, others: true}

func onlyHosts(hosts ...string) audience { return audience{main: true, hosts: hosts} }

// exceptHosts returns the audience that the audience onlyHosts(hosts...) leaves out.
func exceptHosts(hosts ...string) audience { return audience{hosts: hosts, others: true} }

// includes reports whether the message is published in the registered virtual host of a host.
func (a audience) includes(host string) bool { return slices.Contains(a.hosts, host) != a.others }

// addressedMessage is a message and the virtual hosts in which it is published.
type addressedMessage struct {
	oslomsg.Message
	to audience
}

// acceptedPushes contains, by host and topic, the pushes that the agents of a host accept. Each version of an
// object is a message of its own, so a host whose agents register many versions gets all of them, and others
// only their own ones. A host that is not in acceptedPushes was registered after acceptedPushes was read.
type acceptedPushes map[string]map[string]bool

// accept reports whether the message is not a push, or a push in a version that the host's agents accept.
func (p acceptedPushes) accept(host string, m addressedMessage) bool {
	topics, known := p[host]
	return !known || topics[m.Topic] || !strings.HasPrefix(m.Topic, pushTopicPrefix)
}

// acceptedPushes reads which pushes the agents in the virtual hosts accept.
func (h *handlers) acceptedPushes(
	ctx context.Context,
	registered []agentstore.VirtualHost,
) (acceptedPushes, error) {
	accepted, hosts := acceptedPushes{}, make([]string, len(registered))
	for i, v := range registered {
		accepted[v.Host], hosts[i] = map[string]bool{}, v.Host
	}
	versions, err := h.Store.ObjectVersionsOnHosts(ctx, hosts)
	for _, v := range versions {
		accepted[v.Host][pushTopic(v.Type, v.Version)] = true
	}
	return accepted, err
}

// messagesFor returns the included messages, in order.
func messagesFor(all []addressedMessage, included func(addressedMessage) bool) (messages []oslomsg.Message) {
	for _, m := range all {
		if included(m) {
			messages = append(messages, m.Message)
		}
	}
	return messages
}
