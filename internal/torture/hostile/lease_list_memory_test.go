package hostile

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// peakMemory returns the maximum resident memory of a process in bytes since the last call of
// resetPeakMemory.
func peakMemory(t *testing.T, process int) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(process), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatalf("the status of process %d has no line VmHWM: %s", process, text)
	return 0
}

// resetPeakMemory sets the maximum resident memory of a process to its current resident memory.
func resetPeakMemory(t *testing.T, process int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join("/proc", strconv.Itoa(process), "clear_refs"), []byte("5"), 0o200); err != nil {
		t.Fatal(err)
	}
}

// insertLeasesOfProject inserts leases with reservations whose requirements are as long as berth allows. As
// many of the leases and reservations as the default quota allows have not ended.
func insertLeasesOfProject(t *testing.T, database, project string, ended int) (leases int) {
	t.Helper()
	const live, reservations = 500, 2
	for _, of := range []struct {
		leases                     int
		status, reservation, event string
	}{{live, "PENDING", "pending", "UNDONE"}, {ended, "TERMINATED", "deleted", "DONE"}} {
		storetest.Exec(t, database, `
			with made as (
				insert into lease (id, name, user_id, project_id, status, start_at, end_at)
				select gen_random_uuid(), 'l', 'u', $1, $2, now() + interval '1 day', now() + interval '2 days'
				from generate_series(1, $3)
				returning id),
			events as (
				insert into event (id, lease_id, event_type, at, status)
				select gen_random_uuid(), id, kind, now() + interval '1 day', $4 from made, unnest(array['start_lease', 'end_lease']) kind)
			insert into reservation (id, lease_id, position, resource_type, status, min_hosts, max_hosts, hypervisor_properties, resource_properties,
				before_end)
			select gen_random_uuid(), id, n, 'physical:host', $5, 1, 1, '["!=","$cpu_info","' || repeat('x', 4096 - 22) || '"]', '', 'default'
			from made, generate_series(1, $6::int) n`, project, of.status, of.leases, of.event, of.reservation, reservations)
		leases += of.leases
	}
	return leases
}

// TestLeaseList_MemoryOfConcurrentListsIsBounded lists the leases of a project that has used its quota, four
// times at the same time. The lists also have ended leases, which do not count for the quota: together the
// four answers have about 200 MB.
func TestLeaseList_MemoryOfConcurrentListsIsBounded(t *testing.T) {
	t.Parallel() // it measures a process of its own
	const (
		lists     = 4
		ended     = 4500
		maxGrowth = 64 << 20
	)
	s := servertest.NewDeployment(t, storetest.URL(t))
	leases := insertLeasesOfProject(t, s.Database, "demo", ended)
	api := s.StartWorker("api")
	if code, _, err := api.Do("GET", "/reservation/v1/leases?limit=100", nil); code != http.StatusOK {
		t.Fatalf("list 100 leases: got status %d, error %v; want 200", code, err)
	}
	process := api.Cmd.Process.Pid
	resetPeakMemory(t, process)
	before := peakMemory(t, process)

	var calls errgroup.Group
	for range lists {
		calls.Go(func() error {
			n, err := countLeases(api.ProcessURL, "ann:demo")
			if err == nil && n != leases {
				err = fmt.Errorf("got %d leases, want %d", n, leases)
			}
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		t.Errorf("list the leases of a project: %v", err)
	}

	growth := peakMemory(t, process) - before
	t.Logf("%d concurrent lists of %d leases: the resident memory grew from %d MiB by at most %d MiB",
		lists, leases, before>>20, growth>>20)
	if growth > maxGrowth {
		t.Errorf(
			"%d concurrent lists of %d leases: the resident memory grew by %d MiB, want at most %d MiB",
			lists, leases, growth>>20, maxGrowth>>20,
		)
	}
}

// countLeases lists the leases of a project, and decodes one lease after another.
func countLeases(url, token string) (n int, err error) {
	r, err := http.NewRequest(http.MethodGet, url+"/reservation/v1/leases", nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("X-Auth-Token", token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("got status %s", answer.Status)
	}
	d := json.NewDecoder(answer.Body)
	for range 3 { // {"leases":[
		if _, err := d.Token(); err != nil {
			return 0, err
		}
	}
	for ; d.More(); n++ {
		var l struct{ Reservations []struct{} }
		if err := d.Decode(&l); err != nil {
			return n, err
		}
	}
	for range 2 { // ]}
		if _, err := d.Token(); err != nil {
			return n, err
		}
	}
	return n, nil
}
