package kills

import (
	"testing"

	"berth/internal/devstack"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
	"berth/internal/torture/harness"
)

// While clients write, one node of each service of Temporal is killed, the other one is frozen, and a new
// node replaces an old one. The APIs answer from the rows, so that no request may fail.
func TestAcknowledgedWrites_SurviveFaultsOfTemporalNodes(t *testing.T) {
	t.Parallel()
	cluster := harness.StartTemporalCluster(t)
	s := servertest.NewDeployment(t, storetest.URL(t), "TEMPORAL_ADDRESS="+cluster.Address)
	c := s.StartWorker("api,relay,temporal")
	c.AwaitReady()
	start := func(n *devstack.TemporalNode) {
		if err := n.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	faults := []func(l *clientLoad){
		func(l *clientLoad) {
			for _, service := range []string{"frontend", "history", "matching"} {
				n := cluster.Of(service)[0]
				n.Kill()
				l.awaitRounds(s)
				start(n)
			}
		},
		func(l *clientLoad) {
			for _, service := range []string{"frontend", "history", "matching"} {
				n := cluster.Of(service)[1]
				n.Freeze()
				l.awaitRounds(s)
				n.Resume()
			}
		},
		func(l *clientLoad) {
			for _, service := range []string{"history", "matching"} {
				if _, err := cluster.Join(t.Context(), service); err != nil {
					t.Fatal(err)
				}
				l.awaitRounds(s)
				cluster.Of(service)[0].Temporal.Stop()
			}
		},
	}
	if failed := checkWritesSurvive(c, s, faults...); failed > 0 {
		t.Errorf("%d requests failed while nodes of Temporal did, want none", failed)
	}
}
