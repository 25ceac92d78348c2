package harness

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

func TestRegisterModel_RejectsImpossibleHistories(t *testing.T) {
	t.Parallel()
	set := func(expect int64, value string) Access {
		return Access{
			Register: "c",
			Kind:     Write,
			Expect:   expect,
			Value:    value,
		}
	}
	at := func(generation int64, value string) Outcome {
		return Outcome{Known: true, Generation: generation, Value: value}
	}
	seen := Access{Register: "c", Kind: Read}
	refused := Outcome{Known: true, Refused: true}
	type step struct {
		Access
		Outcome
	}
	for name, tc := range map[string]struct {
		steps []step // one after the other
		want  bool
	}{
		"write and read":                                            {[]step{{set(0, "a"), at(1, "")}, {seen, at(1, "a")}}, true},
		"refused write":                                             {[]step{{set(0, "a"), at(1, "")}, {set(0, "b"), refused}, {seen, at(1, "a")}}, true},
		"unanswered write that took effect":                         {[]step{{set(0, "a"), Outcome{}}, {seen, at(1, "a")}, {set(0, "b"), refused}}, true},
		"unanswered write without effect":                           {[]step{{set(0, "a"), Outcome{}}, {seen, at(0, "")}, {set(0, "b"), at(1, "")}}, true},
		"unanswered write that took effect late":                    {[]step{{set(0, "a"), Outcome{}}, {seen, at(0, "")}, {seen, at(1, "a")}}, true},
		"two writes with one generation":                            {[]step{{set(0, "a"), at(1, "")}, {set(0, "b"), at(1, "")}}, false},
		"acknowledged write that is lost":                           {[]step{{set(0, "a"), at(1, "")}, {seen, at(0, "")}}, false},
		"refusal of the current generation":                         {[]step{{set(0, "a"), refused}}, false},
		"refused write that took effect":                            {[]step{{set(1, "a"), refused}, {seen, at(1, "a")}}, false},
		"unanswered write that took effect and vanished":            {[]step{{set(0, "a"), Outcome{}}, {seen, at(1, "a")}, {seen, at(0, "")}}, false},
		"unanswered write with a stale generation that took effect": {[]step{{set(0, "a"), at(1, "")}, {set(0, "b"), Outcome{}}, {seen, at(1, "b")}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := History{Start: time.Now()}
			for _, s := range tc.steps {
				h.Add(0, time.Now(), s.Access, s.Outcome)
				time.Sleep(time.Microsecond)
			}
			if got := porcupine.CheckOperations(registerModel, h.Ops); got != tc.want {
				t.Errorf("check whether the history is linearizable: got %v, want %v", got, tc.want)
			}
		})
	}
}
