package reconciler

import (
	"testing"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"berth/internal/contract"
	"berth/internal/store/outbox"
)

func TestDiffers_ComparesWhatTheWorkflowsOfPortsAndLeasesWrite(t *testing.T) {
	t.Parallel()
	port := contract.Attributes{
		Status:   "ACTIVE",
		Project:  "p",
		Host:     "cmp-1",
		Resource: "port",
	}
	unbound := contract.Attributes{Status: "DOWN", Project: "p", Resource: "port"}
	deleted := contract.Attributes{Status: "DELETED", Resource: "port"}
	lease := contract.Attributes{Status: "PENDING", Project: "p", Resource: "lease"}
	entry := contract.Attributes{Project: "p", Resource: "network"}
	type attributes map[string]string
	for name, c := range map[string]struct {
		row       contract.Attributes
		execution attributes
		want      bool
	}{
		"port, equal": {port, attributes{
			"BerthStatus":   "ACTIVE",
			"BerthProject":  "p",
			"BerthHost":     "cmp-1",
			"BerthResource": "port",
		}, false},
		"port, other status": {port, attributes{
			"BerthStatus":   "DOWN",
			"BerthProject":  "p",
			"BerthHost":     "cmp-1",
			"BerthResource": "port",
		}, true},
		"port, other host": {port, attributes{
			"BerthStatus":   "ACTIVE",
			"BerthProject":  "p",
			"BerthHost":     "cmp-2",
			"BerthResource": "port",
		}, true},
		"port, without host": {port, attributes{"BerthStatus": "ACTIVE", "BerthProject": "p", "BerthResource": "port"}, true},
		"port, other project": {port, attributes{
			"BerthStatus":   "ACTIVE",
			"BerthProject":  "q",
			"BerthHost":     "cmp-1",
			"BerthResource": "port",
		}, true},
		"port, without resource": {port, attributes{"BerthStatus": "ACTIVE", "BerthProject": "p", "BerthHost": "cmp-1"}, true},
		"unbound port, equal":    {unbound, attributes{"BerthStatus": "DOWN", "BerthProject": "p", "BerthResource": "port"}, false},
		"unbound port, with a host": {unbound, attributes{
			"BerthStatus":   "DOWN",
			"BerthProject":  "p",
			"BerthHost":     "cmp-1",
			"BerthResource": "port",
		}, true},
		"deleted port keeps its host": {deleted, attributes{
			"BerthStatus":   "DELETED",
			"BerthProject":  "p",
			"BerthHost":     "cmp-1",
			"BerthResource": "port",
		}, false},
		"deleted port, other status": {deleted, attributes{
			"BerthStatus":   "ACTIVE",
			"BerthProject":  "p",
			"BerthHost":     "cmp-1",
			"BerthResource": "port",
		}, true},
		"lease, equal":                {lease, attributes{"BerthStatus": "PENDING", "BerthProject": "p", "BerthResource": "lease"}, false},
		"lease, without project":      {lease, attributes{"BerthStatus": "PENDING", "BerthResource": "lease"}, true},
		"journal entry keeps its own": {entry, attributes{"BerthStatus": "pending", "BerthProject": "q"}, false},
		"port without any attribute":  {port, nil, true},
	} {
		found := &common.SearchAttributes{IndexedFields: map[string]*common.Payload{}}
		for name, value := range c.execution {
			payload, err := converter.GetDefaultDataConverter().ToPayload(value)
			if err != nil {
				t.Fatal(err)
			}
			found.IndexedFields[name] = payload
		}
		if got := differs(c.row, found); got != c.want {
			t.Errorf("%s: differs: got %t, want %t", name, got, c.want)
		}
	}
}

func TestComparison_HiddenProjectIsNoDifference(t *testing.T) {
	t.Parallel()
	for _, hide := range []bool{false, true} {
		rows := map[string]outbox.Row{
			"port/1": {Attributes: contract.Attributes{Status: "ACTIVE", Project: "p", Resource: "port"}},
		}
		newComparison(&Reconciler{Options: Options{HideProjects: hide}}).hideProjects(rows)
		found := &common.SearchAttributes{IndexedFields: map[string]*common.Payload{}}
		for name, value := range map[string]string{contract.AttributeStatus: "ACTIVE", contract.AttributeResource: "port"} {
			payload, err := converter.GetDefaultDataConverter().ToPayload(value)
			if err != nil {
				t.Fatal(err)
			}
			found.IndexedFields[name] = payload
		}
		if got := differs(rows["port/1"].Attributes, found); got == hide {
			t.Errorf("workflow without a project, HideProjects %t: got a difference %t, want %t", hide, got, !hide)
		}
	}
}
