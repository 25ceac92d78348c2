package lease

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMatchCandidates_RefusesAnUnknownProperty(t *testing.T) {
	t.Parallel()
	hosts := []HostCandidate{
		{Host: Host{ID: 1, Capabilities: map[string]string{"gpu": "x"}}},
		{Host: Host{ID: 2}},
	}
	matching, err := MatchCandidates(hosts, []Requirement{{"==", "gpu", "x"}, {"==", "trust_id", "null"}})
	if err != nil || len(matching) != 1 || matching[0].ID != 1 {
		t.Errorf("match hosts with gpu=x and without trust_id: got hosts %v and error %v, want host 1",
			matching, err)
	}
	_, err = MatchCandidates(hosts, []Requirement{{"==", "gpo", "x"}})
	if kindOf(err) != MalformedRequirements {
		t.Errorf(
			"match a requirement on the property gpo, which no host has: got %v, want a fault of kind MalformedRequirements",
			err,
		)
	}
}

func TestPickHosts_PrefersHostsWithoutReservations(t *testing.T) {
	t.Parallel()
	unreserved := func(id int64) HostCandidate { return HostCandidate{Host: Host{ID: id, Reservable: true}, Free: true} }
	free := func(id int64) HostCandidate { c := unreserved(id); c.Booked = true; return c }
	taken := func(id int64) HostCandidate { c := free(id); c.Free = false; return c }
	late := func(id int64) HostCandidate { c := free(id); c.Late = true; return c }
	former := func(id int64) HostCandidate { c := free(id); c.Former = true; return c }
	formerOfOther := func(id int64) HostCandidate { c := unreserved(id); c.FormerOfOther = true; return c }
	unreservable := func(id int64) HostCandidate { c := unreserved(id); c.Reservable = false; return c }
	for _, c := range []struct {
		name        string
		all         []HostCandidate
		least, most int
		want        []int64
		kind        Kind
	}{
		{"only unreserved hosts if there are enough", []HostCandidate{free(1), unreserved(2), free(3)}, 1, 3, []int64{2}, ""},
		{"no more than most", []HostCandidate{unreserved(1), unreserved(2), unreserved(3)}, 1, 2, []int64{1, 2}, ""},
		{"otherwise free hosts with reservations first", []HostCandidate{unreserved(1), free(2), free(3)}, 2, 3, []int64{2, 3, 1}, ""},
		{"never taken or unreservable hosts", []HostCandidate{taken(1), unreservable(2)}, 1, 1, nil, NotEnoughHosts},
		{"former hosts first", []HostCandidate{unreserved(1), former(2), unreserved(3)}, 1, 2, []int64{2, 1}, ""},
		{"former hosts before free ones", []HostCandidate{late(4), unreserved(1), free(2), former(3)}, 4, 4, []int64{3, 2, 1, 4}, ""},
		{"no former host that is taken", []HostCandidate{unreserved(1), {Host: Host{ID: 2, Reservable: true}, Former: true}}, 1, 2, []int64{1}, ""},
		{"never former hosts of others", []HostCandidate{formerOfOther(1), free(2)}, 1, 2, []int64{2}, ""},
		{"too few", []HostCandidate{unreserved(1), free(2)}, 3, 3, nil, NotEnoughHosts},
		{"no hosts requested", nil, 0, 2, []int64{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := PickHosts(c.all, c.least, c.most)
			if kindOf(err) != c.kind {
				t.Error(err)
			}
			if c.kind == "" && len(got)+len(c.want) > 0 {
				if d := cmp.Diff(c.want, got); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

// BenchmarkMatchCandidates measures how long a reservation with the maximum number of requirements needs in a
// cloud with 500 hosts.
func BenchmarkMatchCandidates(b *testing.B) {
	hosts := make([]HostCandidate, 500)
	for i := range hosts {
		hosts[i].ID, hosts[i].Capabilities = int64(i+1), map[string]string{"rack": strconv.Itoa(i % 10)}
	}
	text := conditionsOf(MaxReservationRequirements)
	for b.Loop() {
		requirements, err := HostRequirements(text, "")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := MatchCandidates(hosts, requirements); err != nil {
			b.Fatal(err)
		}
	}
}
