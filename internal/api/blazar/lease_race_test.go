package blazar

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/store/storetest"
)

// contenders is the number of requests that compete for the last free resource.
const contenders = 64

// contests returns how many times the test lets concurrent requests compete for a resource.
func contests(t *testing.T) int { return max(1, storetest.Rounds(t, 100)/100) }

func TestLease_OneOfManyClientsGetsTheLastResource(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reservation string
		status      int
		message     string
		held        string // query of the amount that all leases together have allocated at the end
	}{
		"host": {`{"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":"","resource_properties":""}`,
			409, "Not enough hosts available", `select count(*)::text from host_allocation`},
		"instance": {`{"resource_type":"virtual:instance","vcpus":8,"memory_mb":512,"disk_gb":0,"amount":1,"affinity":null,"resource_properties":""}`,
			409, "Not enough hosts available", `select sum(slots)::text from host_allocation`},
		"floating IP": {`{"resource_type":"virtual:floatingip","network_id":"{network}","amount":1}`,
			400, "Not enough floating IPs available", `select count(*)::text from floatingip_allocation`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			s.largeHost("cmp-1")
			reservation := strings.ReplaceAll(c.reservation, "{network}", s.externalNetwork(1))
			from := time.Now().UTC().Truncate(time.Hour)
			for range contests(t) {
				from = from.Add(time.Hour)
				body := fmt.Sprintf(
					`{"name":"mine","start_date":%q,"end_date":%q,"events":[],"before_end_date":null,"reservations":[%s]}`,
					from.Format("2006-01-02 15:04"),
					from.Add(time.Hour).Format("2006-01-02 15:04"),
					reservation,
				)
				want := map[string]int{"201 ": 1, fmt.Sprint(c.status, " ", c.message): contenders - 1}
				if d := cmp.Diff(want, s.contend(body)); d != "" {
					t.Errorf(
						"number of each result of concurrent requests for a lease from %s (-want +got):\n%s",
						from,
						d,
					)
				}
			}
			var held string
			if err := storetest.Connect(t, s.db).QueryRow(t.Context(), c.held).Scan(&held); err != nil ||
				held != strconv.Itoa(contests(t)) {
				t.Errorf(
					"allocated amount after %d rounds of concurrent requests: got %s, error %v; want one per round",
					contests(t), held, err,
				)
			}
		})
	}
}

// contend sends the same request `contenders` times concurrently, and counts how often it gets each answer.
func (s *service) contend(body string) map[string]int {
	s.Helper()
	var all sync.WaitGroup
	start, answers := make(chan struct{}), make(chan string, contenders)
	for range contenders {
		all.Go(func() {
			<-start
			answers <- s.requestLease(body)
		})
	}
	close(start)
	all.Wait()
	close(answers)
	counted := map[string]int{}
	for a := range answers {
		counted[a]++
	}
	return counted
}

// requestLease requests a lease. requestLease returns the status of the response; if berth refuses the lease,
// requestLease also returns the error message.
func (s *service) requestLease(body string) string {
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.url+"/v1/leases",
		strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("X-Auth-Token", "alice:red")
	r.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = got.Body.Close() }()
	raw, err := io.ReadAll(got.Body)
	var refused struct {
		Message string `json:"error_message"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &refused)
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(got.StatusCode, " ", refused.Message)
}
