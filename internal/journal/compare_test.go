package journal

import (
	"encoding/json"
	"testing"
)

func TestSameObject_ComparesOnlySentAttributes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, sent, got string
		want            bool
	}{
		{"equal", `{"a":1,"b":"x"}`, `{"b":"x","a":1}`, true},
		{"the controller adds its own", `{"a":1}`, `{"a":1,"b":2}`, true},
		{"other value", `{"a":1}`, `{"a":2}`, false},
		{"number as a decimal string", `{"a":1}`, `{"a":"1"}`, true},
		{"decimal string as a number", `{"a":"1"}`, `{"a":1}`, true},
		{"other number as a decimal string", `{"a":1}`, `{"a":"2"}`, false},
		{"text and a number", `{"a":"1e3"}`, `{"a":1000}`, false},
		{"number and another type", `{"a":1}`, `{"a":true}`, false},
		{"missing", `{"a":1}`, `{}`, false},
		{"missing, same revision", `{"a":1,"revision_number":3}`, `{"revision_number":3}`, true},
		{"missing, other revision", `{"a":1,"revision_number":3}`, `{"revision_number":2}`, false},
		{"same revision, other value", `{"a":1,"revision_number":3}`, `{"a":2,"revision_number":3}`, false},
		{"null and nothing", `{"a":null}`, `{}`, true},
		{"empty and nothing", `{"a":[],"b":{}}`, `{}`, true},
		{"null and a value", `{"a":null}`, `{"a":1}`, false},
		{"empty and a value", `{"a":[]}`, `{"a":[1]}`, false},
		{"false and nothing", `{"a":false}`, `{}`, false},
		{"number written otherwise", `{"a":1.0}`, `{"a":1}`, true},
		{"huge exponent", `{"a":1e999999999}`, `{"a":2e999999999}`, false},
		{"dashed UUID", `{"a":"0123456789abcdef0123456789abcdef"}`, `{"a":"01234567-89ab-cdef-0123-456789abcdef"}`, true},
		{"dashed text", `{"a":"web1"}`, `{"a":"web-1"}`, false},
		{"inside lists", `{"a":[{"i":"1"},{"i":"2"}]}`, `{"a":[{"i":"1","more":1},{"i":"2"}]}`, true},
		{"shorter list", `{"a":[1,2]}`, `{"a":[1]}`, false},
		{"other order", `{"a":[1,2]}`, `{"a":[2,1]}`, true},
		{"other order of objects", `{"a":[{"i":"1"},{"i":"2"}]}`, `{"a":[{"i":"2","more":1},{"i":"1"}]}`, true},
		{"an element twice", `{"a":[1,1]}`, `{"a":[1,2]}`, false},
		{"null inside", `{"a":null,"b":[null]}`, `{"b":[[]]}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := SameObject(json.RawMessage(`{"port":`+tt.sent+`}`), json.RawMessage(`{"port":`+tt.got+`}`))
			if got != tt.want {
				t.Errorf(
					"SameObject: got %t for the sent object %s and the controller's object %s, want the opposite",
					got, tt.sent, tt.got,
				)
			}
		})
	}
	for _, got := range []string{``, `null`, `[]`, `{}`, `{"port":null}`, `{"port":[]}`, `{"network":{"a":1}}`, `garbage`} {
		if SameObject(json.RawMessage(`{"port":{"a":1}}`), json.RawMessage(got)) {
			t.Errorf("SameObject: got true for the controller's response %q, want false", got)
		}
	}
}
