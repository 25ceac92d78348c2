package network

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
)

func TestTrunkStatus_FollowsFromTheStatusesOfItsPorts(t *testing.T) {
	t.Parallel()
	port := func(status string) TrunkPort { return TrunkPort{Status: status, VIF: VIFOVS, AdminUp: true} }
	unbound, failed := TrunkPort{
		Status:  Down,
		VIF:     VIFUnbound,
		AdminUp: true,
	}, TrunkPort{
		Status:  Down,
		VIF:     VIFFailed,
		AdminUp: true,
	}
	disabled := TrunkPort{Status: Down, VIF: VIFOVS}
	for want, cases := range map[string][][]TrunkPort{
		Active:        {{port(Active)}, {port(Active), port(Active)}, {port(Active), disabled}},
		Down:          {{unbound}, {failed, port(Active)}, {disabled, port(Active)}, {port(Active), port(Active), port(Down)}, {unbound, failed}},
		Build:         {{port(Build)}, {port(Active), port(Down), port(Build)}},
		TrunkDegraded: {{port(Active), port(Errored), port(Build)}},
		Errored:       {{port(Errored), port(Active)}, {port(Active), failed, port(Errored)}},
	} {
		for i, c := range cases {
			t.Run(fmt.Sprintf("%s %d", want, i), func(t *testing.T) {
				t.Parallel()
				if got := TrunkStatus(c[0], c[1:], false); got != want {
					t.Errorf("status of the trunk with the ports %+v: want %s, got %s", c, want, got)
				}
			})
		}
	}
	for want, p := range map[string]TrunkPort{Build: port(Active), Down: unbound, Errored: port(Errored)} {
		if got := TrunkStatus(p, nil, true); got != want {
			t.Errorf("status of a blocked trunk with the parent port %+v: got %s, want %s", p, got, want)
		}
	}
}

func TestTrunk_ReasonNamesTheMostSeriousPortsFirst(t *testing.T) {
	t.Parallel()
	port := func(n byte, status, vif string) TrunkPort {
		return TrunkPort{ID: uuid.UUID{15: n}, Status: status, VIF: vif, AdminUp: true}
	}
	id := func(n byte) string { return uuid.UUID{15: n}.String() }
	parent := port(1, Active, VIFOVS)
	disabled := TrunkPort{ID: uuid.UUID{15: 9}, Status: Down, VIF: VIFOVS}
	for want, c := range map[string][]TrunkPort{
		"": {parent, port(2, Active, VIFOVS), disabled},
		"its parent port " + id(1) + " is not bound to a host":                  {port(1, Down, VIFUnbound), port(2, Down, VIFOVS)},
		"its parent port " + id(9) + " is administratively down":                {disabled, port(2, Down, VIFOVS)},
		"the binding of its parent port " + id(1) + " failed":                   {port(1, Down, VIFFailed)},
		"its parent port " + id(1) + " is BUILD":                                {port(1, Build, VIFOVS), port(2, Active, VIFOVS)},
		"its subport " + id(3) + " is ERROR; its subport " + id(2) + " is DOWN": {parent, port(2, Down, VIFOVS), port(3, Errored, VIFOVS)},
		"the binding of its subport " + id(6) + " failed; its subport " + id(2) + " is DOWN; its subport " + id(3) +
			" is DOWN; 2 more of its ports are not ACTIVE": {
			parent, port(2, Down, VIFOVS), port(3, Down, VIFOVS), port(4, Down, VIFOVS), port(5, Build, VIFOVS), port(6, Down, VIFFailed),
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			if got := TrunkReason(c[0], c[1:]); got != want {
				t.Errorf("reason of the trunk with the ports %+v: got %q, want %q", c, got, want)
			}
		})
	}
}
