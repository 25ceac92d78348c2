package network

import (
	"testing"
	"time"
)

func TestNovaEventForStatus_OnlyServerPortsAndOnlyPluggedOrUnplugged(t *testing.T) {
	t.Parallel()
	const server = "6c2a1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b11"
	want := map[[2]string]string{
		{Down, Active}:   "network-vif-plugged completed",
		{Build, Active}:  "network-vif-plugged completed",
		{Down, Errored}:  "network-vif-plugged failed",
		{Build, Errored}: "network-vif-plugged failed",
		{Active, Down}:   "network-vif-unplugged completed",
	}
	statuses := []string{Active, Down, Build, Errored}
	for _, from := range statuses {
		for _, to := range statuses {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				e, _ := Port{DeviceOwner: "compute:nova", DeviceID: server}.NovaEventForStatus(from, to)
				if got := e.Name + " " + e.Status; got != want[[2]string{from, to}] &&
					(got != " " || want[[2]string{from, to}] != "") {
					t.Errorf("Nova event for the status change of a server's port: got %q, want %q",
						got, want[[2]string{from, to}])
				}
				for _, p := range []Port{{DeviceOwner: "compute:nova", DeviceID: "lb-1"}, {DeviceOwner: "network:dhcp", DeviceID: server}, {DeviceID: server}} {
					if e, ok := p.NovaEventForStatus(from, to); ok {
						t.Errorf(
							"status change of a port with device_owner %q and device_id %q: got the Nova event %+v, want none",
							p.DeviceOwner, p.DeviceID, e,
						)
					}
				}
			})
		}
	}
}

func TestNovaEventsToResend_OnlyThePluggedEventThatNovaStillWaitsForIsSentAgain(t *testing.T) {
	t.Parallel()
	e := func(name string, age time.Duration) NovaEvent { return NovaEvent{Name: name, Age: age} }
	for name, tc := range map[string]struct {
		events []NovaEvent
		codes  []int
		want   int
	}{
		"accepted":            {[]NovaEvent{e(NovaVIFPlugged, 0)}, []int{200}, 0},
		"unknown server":      {[]NovaEvent{e(NovaVIFPlugged, 0)}, []int{404}, 1},
		"server without host": {[]NovaEvent{e(NovaVIFPlugged, time.Minute), e(NovaNetworkChanged, 0)}, []int{422, 404}, 1},
		"too old":             {[]NovaEvent{e(NovaVIFPlugged, novaServerTimeout)}, []int{404}, 0},
		"unplugged since":     {[]NovaEvent{e(NovaVIFPlugged, 0), e(NovaVIFUnplugged, 0)}, []int{404, 404}, 0},
		"deleted since":       {[]NovaEvent{e(NovaVIFPlugged, 0), e(NovaVIFDeleted, 0)}, []int{404, 404}, 0},
		"plugged again since": {[]NovaEvent{e(NovaVIFPlugged, 0), e(NovaVIFUnplugged, 0), e(NovaVIFPlugged, 0)}, []int{404, 404, 404}, 1},
		"no plugged event":    {[]NovaEvent{e(NovaVIFDeleted, 0), e(NovaNetworkChanged, 0)}, []int{404, 404}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := NovaEventsToResend(tc.events, tc.codes); len(got) != tc.want {
				t.Errorf("want %d events to send to Nova again, got %v", tc.want, got)
			}
		})
	}
}
