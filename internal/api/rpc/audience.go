package rpc

import (
	"slices"

	"berth/internal/api/rpc/oslomsg"
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

// messagesFor returns those messages whose audience satisfies the condition, in order.
func messagesFor(all []addressedMessage, included func(audience) bool) (messages []oslomsg.Message) {
	for _, m := range all {
		if included(m.to) {
			messages = append(messages, m.Message)
		}
	}
	return messages
}
