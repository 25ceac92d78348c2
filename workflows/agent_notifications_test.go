package workflows_test

import (
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"berth/internal/contract"
	"berth/internal/network"
)

func TestAgentNotifications_WhyNamesWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	groups := network.NotificationQueue(network.ResourceSecurityGroup, "red").String()
	tunnels := network.NotificationQueue(network.ResourceTunnel, "").String()
	for want, c := range map[string]struct{ key, project string }{
		"about the security groups of project red are": {groups, "red"},
		"about the security groups of a project are":   {groups, ""},
		"about tunnel endpoints are":                   {tunnels, ""},
		"about network " + portID + " are":             {portID, ""},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			env := newEnvironment(&fakeRows{receiverFailures: 6})
			if c.project != "" {
				project := temporal.NewSearchAttributeKeyKeyword(contract.AttributeProject).ValueSet(c.project)
				if err := env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(project)); err != nil {
					t.Fatal(err)
				}
			}
			var why contract.Why
			schedule(env, time.Second, func() { why = queryWhy(t, env) })
			env.ExecuteWorkflow(contract.AgentNotifications, contract.Input{Key: c.key})
			if err := env.GetWorkflowError(); err != nil {
				t.Errorf("the workflow ended with the error %v", err)
			}
			if !strings.Contains(why.Sentence, want) || why.LastError == "" {
				t.Errorf("query \"why\" while RabbitMQ is away: got %+v, want a sentence with %q", why, want)
			}
		})
	}
}
