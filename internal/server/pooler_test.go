package server_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"berth/internal/server/servertest"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// The settings with a pooler migrate an empty database. Then a process with these settings serves every API,
// and does the work behind them.
func TestPooler_ProcessBehindItServesEveryAPI(t *testing.T) {
	t.Parallel()
	_, settings := servertest.NewNamespace(t)
	database := storetest.URL(t)
	pooler := storetest.StartPgBouncer(t, database, db.PoolerSettings())
	storetest.Exec(t, database, `drop schema public cascade; create schema public`)
	s := servertest.NewDeployment(t, database, settings...)
	s.Settings = append(s.Settings, "BERTH_DATABASE_POOLER_URL="+pooler.URL)
	migrate := exec.CommandContext(t.Context(), servertest.Program(t, "starter"), "migrate")
	migrate.Env = append(os.Environ(), s.Settings...)
	if out, err := migrate.CombinedOutput(); err != nil {
		t.Fatalf("starter migrate: got error %v and the output %s, want no error", err, out)
	}
	c := s.StartWorker("api,relay,temporal")
	c.AwaitReady()
	s.Same("sessions that listen for notes", []string{"1"}, s.Rows(`
		select count(*)::text
		from pg_stat_activity
		where datname = current_database() and query = 'listen berth_note'`))

	checkPorts(s, c)
	checkLease(s, c)
	s.AwaitMirroredAndAudited(c)

	pooler.Stop()
	s.Await("the process is not ready without the pooler", func() string {
		if code, answer, err := c.Do("GET", "/readyz", nil); code != http.StatusServiceUnavailable {
			return fmt.Sprint(code, answer, err)
		}
		return ""
	})
}

// checkPorts creates ports of a network, reports them as an agent does, and waits until all are ACTIVE.
func checkPorts(s *servertest.Deployment, c *servertest.Worker) {
	s.Helper()
	c.RegisterAgents()
	network := c.CreateNetwork("pooled")
	c.CreateSubnet(network)
	var ports []string
	for range 5 {
		port := c.Create("port", servertest.PortBody(network))
		ports = append(ports, port)
		c.Must("POST", "/agent/v1/reports", servertest.ReportsBody(port))
	}
	s.AwaitActive(c, ports)
}

// checkLease registers a host, and begins and ends a lease of it.
func checkLease(s *servertest.Deployment, c *servertest.Worker) {
	s.Helper()
	provider := c.Must("POST", "/placement/resource_providers", servertest.Object{"name": "pooled-1"})
	c.Must("PUT", fmt.Sprint("/placement/resource_providers/", provider["uuid"], "/inventories"),
		servertest.Object{
			"resource_provider_generation": provider["generation"],
			"inventories":                  servertest.Object{"VCPU": servertest.Object{"total": 8}},
		})
	c.Must("POST", "/reservation/v1/os-hosts", servertest.Object{"name": "pooled-1"})
	lease := c.Must("POST", "/reservation/v1/leases", servertest.Object{
		"name":       "pooled",
		"start_date": "now",
		"end_date":   time.Now().UTC().Add(time.Hour).Format("2006-01-02 15:04"),
		"events":     []servertest.Object{},
		"reservations": []servertest.Object{{
			"resource_type":         "physical:host",
			"min":                   1,
			"max":                   1,
			"hypervisor_properties": "",
			"resource_properties":   "",
		}},
	})["lease"].(servertest.Object)
	path := fmt.Sprint("/reservation/v1/leases/", lease["id"])
	awaitStatus := func(status string) {
		s.Helper()
		s.Await("the lease is "+status, func() string {
			_, answer, err := c.Do("GET", path, nil)
			if now, _ := answer["lease"].(servertest.Object); now["status"] == status {
				return ""
			}
			return fmt.Sprint(answer, err)
		})
	}
	awaitStatus("ACTIVE")
	s.Await("the end of the lease is now", func() string { // the API refuses dates of earlier minutes
		now := time.Now().UTC().Format(time.RFC3339)
		code, answer, err := c.Do("PUT", path, servertest.Object{"end_date": now})
		if code == http.StatusOK {
			return ""
		}
		return fmt.Sprint(code, answer, err)
	})
	awaitStatus("TERMINATED")
}

func TestPooler_WithoutSettingsIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	_, settings := servertest.NewNamespace(t)
	database := storetest.URL(t)
	pooler := storetest.StartPgBouncer(t, database, "").URL
	for setting, want := range map[string]string{
		"BERTH_DATABASE_POOLER_URL=" + pooler: "set connect_query of the database in PgBouncer's configuration",
		"BERTH_DATABASE_URL=" + pooler:        "name PostgreSQL itself in BERTH_DATABASE_URL",
	} {
		s := servertest.NewDeployment(t, database, settings...)
		p := servertest.StartProgram(t, servertest.Program(t, "worker"), nil, append(s.Settings, setting)...)
		servertest.Await(t, "the process has ended", func() bool {
			select {
			case <-p.Done:
				return true
			default:
				return false
			}
		})
		if code := p.Cmd.ProcessState.ExitCode(); code == 0 || !strings.Contains(p.Output(), want) {
			t.Errorf("start with %s: got exit code %d and the output below, want a failure with %q:\n%s",
				setting, code, want, p.Output())
		}
	}
}
