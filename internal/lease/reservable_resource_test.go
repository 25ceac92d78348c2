package lease

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

func segmentOf(id string, more ...string) map[string]string {
	all := map[string]string{"network_type": "vlan", "physical_network": "physnet1", "segment_id": id}
	for i := 0; i+1 < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

func newSegment(t *testing.T, values map[string]string) ReservableResource {
	t.Helper()
	r, err := ReservableResource{ID: uuid.New(), Type: NetworkSegment}.With(values, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReservableResource_AttributesAndCapabilities(t *testing.T) {
	t.Parallel()
	r := newSegment(t, segmentOf("0100", "usage_type", "storage"))
	if d := cmp.Diff(segmentOf("100"), r.Attributes); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]string{"usage_type": "storage"}, r.Capabilities); d != "" {
		t.Error(d)
	}
	if s := (Segment{"vlan", "physnet1", 100}); r.Segment() != s {
		t.Errorf("segment: got %v, want %v", r.Segment(), s)
	}
	changed, err := r.With(map[string]string{"rack": "r1"}, []string{"usage_type", "nothing"})
	if err != nil || !maps.Equal(changed.Capabilities, map[string]string{"rack": "r1"}) ||
		r.Capabilities["usage_type"] != "storage" {
		t.Errorf("change capabilities: got %v and the old ones %v, error %v",
			changed.Capabilities, r.Capabilities, err)
	}
	if _, err := (ReservableResource{Type: Device}).With(map[string]string{
		"name":          "iot-1",
		"device_type":   "container",
		"device_driver": "zun",
		"model":         "nano",
	}, nil); err != nil {
		t.Errorf("a device with all attributes: got %v, want no fault", err)
	}
}

func TestReservableResource_Faults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		typ    string
		change map[string]string
		unset  []string
		want   Kind
	}{
		"no network_type":           {NetworkSegment, segmentOf("1"), []string{"network_type"}, MissingParameter},
		"no segment_id":             {NetworkSegment, segmentOf("1"), []string{"segment_id"}, MissingParameter},
		"VLAN, no physical_network": {NetworkSegment, segmentOf("1"), []string{"physical_network"}, MissingParameter},
		"VXLAN on physical_network": {NetworkSegment, segmentOf("1", "network_type", "vxlan"), nil, MalformedParameter},
		"GRE":                       {NetworkSegment, segmentOf("1", "network_type", "gre"), nil, MalformedParameter},
		"VLAN 0":                    {NetworkSegment, segmentOf("0"), nil, MalformedParameter},
		"VLAN 4095":                 {NetworkSegment, segmentOf("4095"), nil, MalformedParameter},
		"text as segment_id":        {NetworkSegment, segmentOf("x"), nil, MalformedParameter},
		"NUL in an attribute":       {NetworkSegment, segmentOf("1", "physical_network", "a\x00"), nil, MalformedParameter},
		"line feed in an attribute": {NetworkSegment, segmentOf("1", "physical_network", "a\nb"), nil, MalformedParameter},
		"escape in an attribute":    {NetworkSegment, segmentOf("1", "physical_network", "a\x1b"), nil, MalformedParameter},
		"NUL in a capability":       {NetworkSegment, segmentOf("1", "rack", "a\x00"), nil, MalformedParameter},
		"capability id":             {NetworkSegment, segmentOf("1", "id", "a"), nil, MalformedParameter},
		"device without its driver": {Device, map[string]string{"name": "iot-1", "device_type": "container"}, nil, MissingParameter},
		"device with an empty name": {Device, map[string]string{"name": "", "device_type": "container", "device_driver": "zun"}, nil, MissingParameter},
		"capability without a name": {NetworkSegment, segmentOf("1", "", "a"), nil, MalformedParameter},
		"capability id of a device ": {Device, map[string]string{
			"name":          "iot-1",
			"device_type":   "c",
			"device_driver": "zun",
			"created_at":    "a",
		}, nil, MalformedParameter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := (ReservableResource{Type: c.typ}).With(c.change, c.unset); kindOf(err) != c.want {
				t.Errorf("got %v, want a fault of kind %q", err, c.want)
			}
		})
	}
	vxlan := map[string]string{"network_type": "vxlan", "segment_id": "16777215"}
	if _, err := (ReservableResource{Type: NetworkSegment}).With(vxlan, nil); err != nil {
		t.Errorf("the largest VNI: got %v, want no fault", err)
	}
}

func TestPickResources_PrefersHeldThenNeverReserved(t *testing.T) {
	t.Parallel()
	candidate := func(free, booked bool, rack string) ResourceCandidate {
		r, err := ReservableResource{
			ID:   uuid.New(),
			Type: Device,
		}.With(map[string]string{
			"name":          "d",
			"device_type":   "c",
			"device_driver": "zun",
			"rack":          rack,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return ResourceCandidate{ReservableResource: r, Booked: booked, Free: free}
	}
	taken := candidate(false, true, "r1")
	booked := candidate(true, true, "r1")
	fresh := candidate(true, false, "r1")
	held := candidate(true, true, "r1")
	elsewhere := candidate(true, false, "r2")
	late := candidate(true, true, "r1")
	late.Late = true
	all := []ResourceCandidate{taken, late, booked, fresh, held, elsewhere}
	for name, c := range map[string]struct {
		least, most int
		held        []uuid.UUID
		want        []uuid.UUID
		kind        Kind
	}{
		"never reserved first":      {1, 1, nil, []uuid.UUID{fresh.ID}, ""},
		"only never reserved":       {1, 3, nil, []uuid.UUID{fresh.ID}, ""},
		"reserved at another time":  {3, 3, nil, []uuid.UUID{booked.ID, held.ID, fresh.ID}, ""},
		"held first":                {1, 2, []uuid.UUID{held.ID}, []uuid.UUID{held.ID, fresh.ID}, ""},
		"a held one that is taken":  {1, 1, []uuid.UUID{taken.ID}, []uuid.UUID{fresh.ID}, ""},
		"not released in time last": {4, 4, nil, []uuid.UUID{booked.ID, held.ID, fresh.ID, late.ID}, ""},
		"held and not released":     {1, 1, []uuid.UUID{late.ID}, []uuid.UUID{late.ID}, ""},
		"more than there are":       {5, 5, nil, nil, NotEnoughResources},
		"held beyond the new limit": {1, 1, []uuid.UUID{held.ID, booked.ID}, []uuid.UUID{booked.ID}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := ReservationDraft{
				Type:               Device,
				Min:                c.least,
				Max:                c.most,
				ResourceProperties: `["=","$rack","r1"]`,
			}
			got, err := PickResources(d, all, c.held)
			if d := cmp.Diff(c.want, got); d != "" || kindOf(err) != c.kind {
				t.Errorf("got error %v, want a fault of kind %q; the picked devices (-want +got):\n%s",
					err, c.kind, d)
			}
		})
	}
	if _, err := PickResources(ReservationDraft{
		Type:               Device,
		Min:                1,
		Max:                1,
		ResourceProperties: `["=","$gpu","1"]`,
	}, all, nil); kindOf(err) != MalformedRequirements {
		t.Errorf(
			"require a property that no device has: got %v, want a fault of kind MalformedRequirements",
			err,
		)
	}
}

// python-chi, the client library of Chameleon, adds a requirement on $physical_network to every network
// reservation.
func TestPickResources_SegmentByItsAttributes(t *testing.T) {
	t.Parallel()
	one := newSegment(t, segmentOf("100", "physical_network", "physnet2"))
	other := newSegment(t, segmentOf("100"))
	d := ReservationDraft{
		Type:               NetworkSegment,
		NetworkName:        "lab",
		NetworkProperties:  `["==","$physical_network","physnet1"]`,
		ResourceProperties: `["<","$segment_id","1000"]`,
	}
	got, err := PickResources(d, []ResourceCandidate{{one, false, true, false}, {other, false, true, false}}, nil)
	if diff := cmp.Diff([]uuid.UUID{other.ID}, got); diff != "" || err != nil {
		t.Errorf("pick a segment: error %v, (-want +got):\n%s", err, diff)
	}
	if err := KeepsHeld(d, []uuid.UUID{one.ID}, got); kindOf(err) != NotEnoughResources {
		t.Errorf(
			"move an active reservation to another segment: got %v, want a fault of kind NotEnoughResources",
			err,
		)
	}
}

func TestReservableResource_ReservedOneKeepsWhatReservationsRequire(t *testing.T) {
	t.Parallel()
	r := newSegment(t, segmentOf("100", "rack", "r1", "note", "a", "blank", ""))
	requirements := []Requirement{{"==", "rack", "r1"}, {"==", "gpu", nullValue}, {"!=", "blank", nullValue}}
	for name, c := range map[string]struct {
		set   map[string]string
		unset []string
		want  Kind
	}{
		"another segment":              {map[string]string{"segment_id": "101"}, nil, ResourceInUse},
		"another required capability":  {map[string]string{"rack": "r2"}, nil, ResourceInUse},
		"without the required one":     {nil, []string{"rack"}, ResourceInUse},
		"with one that must be absent": {map[string]string{"gpu": "yes"}, nil, ResourceInUse},
		"without an empty one":         {nil, []string{"blank"}, ResourceInUse},
		"another free capability":      {map[string]string{"note": "b", "new": "c"}, nil, ""},
		"the same required capability": {map[string]string{"rack": "r1"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is, err := r.With(c.set, c.unset)
			if err == nil {
				err = r.CheckChange(is, requirements)
			}
			if kindOf(err) != c.want {
				t.Errorf("got %v, want a fault of kind %q", err, c.want)
			}
		})
	}
}

func TestSegmentType_NameIsFixedAfterTheStart(t *testing.T) {
	t.Parallel()
	d := ReservationDraft{Type: NetworkSegment, NetworkName: "lab", BeforeEnd: "default"}
	for name, spoil := range map[string]func(*ReservationDraft){
		"empty name":     func(d *ReservationDraft) { d.NetworkName = "" },
		"long name":      func(d *ReservationDraft) { d.NetworkName = string(make([]byte, 256)) },
		"NUL":            func(d *ReservationDraft) { d.NetworkDescription = "\x00" },
		"escape":         func(d *ReservationDraft) { d.NetworkDescription = "\x1b[2J" },
		"delete":         func(d *ReservationDraft) { d.NetworkName = "a\x7f" },
		"unknown action": func(d *ReservationDraft) { d.BeforeEnd = "reboot" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := d
			spoil(&bad)
			if err := CheckReservation(bad); kindOf(err) != MalformedParameter {
				t.Errorf("got %v, want a fault of kind MalformedParameter", err)
			}
		})
	}
	several := d
	several.NetworkDescription = "two\tcolumns\r\nand lines"
	if err := CheckReservation(several); err != nil {
		t.Errorf("description of several lines: got %v, want no fault", err)
	}
	renamed := d
	renamed.NetworkName = "other"
	for status, want := range map[ReservationStatus]Kind{ReservationPending: "", ReservationActive: CannotUpdate} {
		err := checkChange(Reservation{ReservationDraft: d, Status: status}, renamed)
		if kindOf(err) != want {
			t.Errorf("rename the network of a reservation that is %s: got %v, want a fault of kind %q",
				status, err, want)
		}
	}
}
