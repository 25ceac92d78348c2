package portstore_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
	"berth/internal/store/storetest"
)

func TestChanges_AreJournaledAndEnqueueNotes(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	fx := fixture{Store: s, t: t}
	fx.heartbeat(network.OVSAgent, cmp1)
	fx = fx.withNetwork("10.0.0.0/24")
	p := fx.createPort(cmp1)
	p = fx.updatePort(p.ID, network.PortChange{Name: ptr("web-2")})
	fx.updatePort(p.ID, network.PortChange{Name: ptr("web-2")})
	fx.updateStatus(p.ID, l2OnCmp1)
	if err := fx.Network.DeletePort(t.Context(), p.ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := fx.Network.DeleteNetwork(t.Context(), fx.network.ID, nil); err != nil {
		t.Fatal(err)
	}

	rows, err := storetest.Connect(t, url).
		Query(t.Context(), `select object_type, operation, data, parents from journal_entry order by seq`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for rows.Next() {
		var kind, operation string
		var data json.RawMessage
		var parents []string
		if err := rows.Scan(&kind, &operation, &data, &parents); err != nil {
			t.Fatal(err)
		}
		var body struct {
			ID        string `json:"id"`
			ProjectID string `json:"project_id"`
			Revision  *int64 `json:"revision_number"`
		}
		if err := json.Unmarshal(data, &body); err != nil || body.ID == "" || body.ProjectID != "p" ||
			body.Revision == nil {
			t.Errorf(
				"data of the journal entry %s %s: got %s, error %v; want an ID, the project p and a revision_number",
				kind, operation, data, err,
			)
		}
		got = append(got,
			fmt.Sprintf("%s %s %d parents at %d", kind, operation, len(parents), *body.Revision))
	}
	if d := cmp.Diff([]string{
		"network create 0 parents at 1", "subnet create 1 parents at 0",
		"security_group create 0 parents at 1", "security_group_rule create 1 parents at 1", "security_group_rule create 1 parents at 1",
		"security_group_rule create 1 parents at 1", "security_group_rule create 1 parents at 1",
		"port create 3 parents at 1", "port update 3 parents at 2", "port delete 3 parents at 3", "subnet delete 1 parents at 0", "network delete 0 parents at 2",
	}, got); d != "" {
		t.Error(d)
	}
	var fresh bool
	var summary string
	const ofPort = `select fresh, summary from note where workflow_id = $1`
	row := storetest.Connect(t, url).QueryRow(t.Context(), ofPort, "port/"+p.ID.String())
	if err := row.Scan(&fresh, &summary); err != nil || !fresh || summary != "port web-1 on cmp-1" {
		t.Errorf(
			"note of a new port: got fresh %v, summary %q, error %v; want fresh and the summary of the new port",
			fresh, summary, err,
		)
	}
}
