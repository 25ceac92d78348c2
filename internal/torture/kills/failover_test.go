package kills

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"berth/internal/devstack"
	"berth/internal/server/servertest"
	"berth/internal/torture/harness"
)

// The primary is killed and its standby promoted, twice: the killed server comes back as the standby of the
// other one.
func TestAcknowledgedWrites_SurviveFailover(t *testing.T) {
	t.Parallel()
	primary := harness.StartOwnPostgres(t)
	standby, err := primary.StartStandby(t.Context(), filepath.Join(filepath.Dir(servertest.DataFolder(t)), "standby"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	_, settings := servertest.NewNamespace(t)
	s := servertest.NewDeployment(t, devstack.FailoverURL(primary, standby), settings...)
	c := s.StartWorker("api,relay,temporal")
	failOver := func(*clientLoad) {
		if err := primary.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := standby.Promote(t.Context()); err != nil {
			t.Fatal(err)
		}
		promoted := time.Now()
		probe := servertest.Object{"network": servertest.Object{"name": "probe"}}
		s.Await("berth writes to the promoted server", func() string {
			if code, body, err := c.Do(http.MethodPost, "/networking/v2.0/networks", probe); code != http.StatusCreated {
				return fmt.Sprint(code, body, err)
			}
			return ""
		})
		t.Logf("a write is acknowledged %s after the promotion", time.Since(promoted).Round(time.Millisecond))
		if err := primary.Rejoin(t.Context(), standby); err != nil {
			t.Fatal(err)
		}
		primary, standby = standby, primary
	}
	checkSomeFailed(t, checkWritesSurvive(c, s, failOver, failOver))
}
