package hostile

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// copyPortLarge inserts copies of the only port, which are as large as the API allows: 184 kB each.
func copyPortLarge(t *testing.T, database string, copies int) {
	t.Helper()
	storetest.Exec(t, database, `
		insert into port
		select (jsonb_populate_record(port, jsonb_build_object(
			'id', gen_random_uuid(), 'mac', '02:00:00:00:' || lpad(to_hex(n / 256), 2, '0') || ':' || lpad(to_hex(n % 256), 2, '0'),
			'tags', t.large, 'dhcp_options', o.large))).*
		from port, generate_series(1, $1::int) n,
			(select array_agg(lpad(tag::text, 5, '0') || repeat('😀', 250)) large from generate_series(1, 50) tag) t,
			(select jsonb_agg(jsonb_build_object(
				'opt_name', lpad(n::text, 4, '0') || repeat('😀', 60), 'opt_value', repeat('😀', 255), 'ip_version', 4)) large
				from generate_series(1, 100) n) o`, copies)
}

// TestLargePorts_MemoryOfConcurrentRequestsIsBounded sends requests that read all ports of a project, many at
// the same time. The project has used its quota with ports of the maximum size: together they have 92 MB.
func TestLargePorts_MemoryOfConcurrentRequestsIsBounded(t *testing.T) {
	t.Parallel() // it measures a process of its own
	const (
		requests = 30
		ports    = 499
		// far below what the requests need without limits, and above the garbage of a busy machine
		maxGrowth = 1 << 30
	)
	s := servertest.NewDeployment(t, storetest.URL(t))
	api := s.StartWorker("api")
	network := api.Create("network", servertest.Object{"project_id": "demo"})
	parent := api.Create("port", servertest.Object{"project_id": "demo", "network_id": network})
	copyPortLarge(t, s.Database, ports)

	for name, r := range map[string]struct {
		method, path, body string
		want               int // of one or more requests; berth may refuse the others because of its limits
	}{
		"list":  {http.MethodGet, "/networking/v2.0/ports", "", http.StatusOK},
		"trunk": {http.MethodPost, "/networking/v2.0/trunks", trunkOfAllPorts(t, api, parent), http.StatusConflict},
	} {
		t.Run(name, func(t *testing.T) {
			process := api.Cmd.Process.Pid
			resetPeakMemory(t, process)
			before := peakMemory(t, process)
			statuses := make([]int, requests)
			var calls errgroup.Group
			for i := range statuses {
				calls.Go(func() (err error) {
					statuses[i], err = readAnswer(r.method, api.ProcessURL+r.path, r.body, "ann:demo")
					return err
				})
			}
			err := calls.Wait() // the server may break the connection of a list that it cannot send to its end
			growth := peakMemory(t, process) - before
			t.Logf("statuses %v, error of one: %v; the memory grew from %d MiB by at most %d MiB",
				statuses, err, before>>20, growth>>20)
			if growth > maxGrowth || !slices.Contains(statuses, r.want) {
				t.Errorf(
					"%d concurrent requests %s %s for %d large ports: got the statuses %v, and the resident memory grew by %d MiB; want %d, and at most %d MiB",
					requests, r.method, r.path, ports, statuses, growth>>20, r.want, maxGrowth>>20,
				)
			}
		})
	}
}

// trunkOfAllPorts returns the body of a request for a trunk that has all ports as subports, also its parent
// port, so that berth refuses the request after it has read the ports.
func trunkOfAllPorts(t *testing.T, api *servertest.Worker, parent string) string {
	t.Helper()
	subports := []servertest.Object{}
	for i, p := range api.Must("GET", "/networking/v2.0/ports?fields=id", nil)["ports"].([]any) {
		subports = append(subports, servertest.Object{
			"port_id":           p.(servertest.Object)["id"],
			"segmentation_type": "vlan",
			"segmentation_id":   i + 1,
		})
	}
	body, err := json.Marshal(servertest.Object{"trunk": servertest.Object{"port_id": parent, "sub_ports": subports}})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// readAnswer sends a request with a token, and reads the answer to its end.
func readAnswer(method, url, body, token string) (status int, err error) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("X-Auth-Token", token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}
