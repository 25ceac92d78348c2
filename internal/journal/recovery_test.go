package journal

import (
	"encoding/json"
	"fmt"
	"testing"
)

func TestDecideRecovery_ByControllerAndDatabase(t *testing.T) {
	t.Parallel()
	const old, fresh = `{"id":"id1","name":"old"}`, `{"id":"id1","name":"fresh"}`
	for _, tt := range []struct {
		op          Operation
		has, shall  string
		later       bool
		finish      bool
		sends, data string
	}{
		{Create, fresh, fresh, false, true, "", ""},
		{Create, old, fresh, false, false, "update", fresh},
		{Create, old, fresh, true, true, "", ""}, // the later entry sends the newer data
		{Create, `{"id":"id1","name":"strange"}`, fresh, true, false, "update", old},
		{Create, fresh, "", true, true, "", ""},
		{Create, fresh, "", false, false, "delete", old},
		{Create, "", fresh, false, false, "create", fresh},
		{Create, "", fresh, true, false, "create", old},
		{Create, "", "", false, true, "", ""},
		{Create, "", "", true, true, "", ""},
		{Update, fresh, fresh, false, true, "", ""},
		{Update, old, fresh, false, false, "update", fresh},
		{Update, `{"id":"id1","name":"strange"}`, fresh, true, false, "update", old},
		{Update, fresh, "", false, false, "delete", old},
		{Update, fresh, "", true, true, "", ""},
		{Update, "", fresh, false, false, "create", fresh},
		{Update, "", fresh, true, false, "create", old},
		{Update, "", "", false, true, "", ""},
		{Delete, old, "", false, false, "delete", old},
		{Delete, old, "", true, false, "delete", old},
		{Delete, old, fresh, true, false, "delete", old}, // the later entry creates the object again
		{Delete, old, fresh, false, true, "", ""},
		{Delete, "", "", false, true, "", ""},
		{Delete, "", fresh, false, true, "", ""},
	} {
		t.Run(
			fmt.Sprintf("%s, controller %q, database %q, later entry %t", tt.op, tt.has, tt.shall, tt.later),
			func(t *testing.T) {
				t.Parallel()
				o := RecoveryInput{HasLaterEntry: tt.later}
				if tt.has != "" {
					o.Actual = json.RawMessage(tt.has)
				}
				if tt.shall != "" {
					o.Desired = json.RawMessage(tt.shall)
				}
				got := DecideRecovery(entry(tt.op, "network", old), o)
				if got.Finish != tt.finish || got.Reason == "" ||
					!tt.finish && (string(got.Operation) != tt.sends || string(got.Data) != tt.data) {
					t.Errorf(
						"DecideRecovery: got %+v with data %s, want Finish %t, operation %q and data %s",
						got, got.Data, tt.finish, tt.sends, tt.data,
					)
				}
			},
		)
	}
}
