package network

import (
	"fmt"
	"testing"
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
