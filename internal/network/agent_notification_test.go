package network_test

import (
	"testing"

	"berth/internal/network"
)

func TestNotificationSubject_NamesWhatTheQueueIsAbout(t *testing.T) {
	t.Parallel()
	groups := network.NotificationQueue(network.ResourceSecurityGroupRule, "red").String()
	for want, c := range map[string]struct{ queue, project string }{
		"the security groups of project red":           {groups, "red"},
		"the security groups of a project":             {groups, ""},
		"tunnel endpoints":                             {network.NotificationQueue(network.ResourceTunnel, "").String(), ""},
		"MACs of distributed routers":                  {network.NotificationQueue(network.ResourceDVRMAC, "").String(), ""},
		"states of DHCP agents":                        {network.NotificationQueue(network.ResourceDHCPAgent, "").String(), ""},
		"network 6a8ff5ae-0a4e-4f49-8f9c-0f9bb2ac1111": {"6a8ff5ae-0a4e-4f49-8f9c-0f9bb2ac1111", ""},
	} {
		if got := network.NotificationSubject(c.queue, c.project); got != want {
			t.Errorf("subject of the notifications %s, project %q: got %q, want %q", c.queue, c.project, got, want)
		}
	}
}
