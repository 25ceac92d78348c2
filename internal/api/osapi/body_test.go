package osapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestParseJSON_RefusesInvalidUTF8AndLoneSurrogates(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`"\ud83d\ude00"`:       true,
		`"\uD83D\uDE00x"`:      true,
		`"\\ud83d"`:            true,
		`"\\\\ud83d"`:          true,
		`"\ufffd"`:             true,
		"\"\ufffd\"":           true,
		`"\n\u00e9"`:           true,
		`"\ud83d"`:             false,
		`"\ude00"`:             false,
		`"\ud83dx"`:            false,
		`"\ud83d\n"`:           false,
		`"\ud83d\u0041"`:       false,
		`"\ude00\ud83d"`:       false,
		`"\ud83d\ud83d\ude00"`: false,
		`{"\udfff":1}`:         false,
		`"\\\ud83d"`:           false,
		"\"\xff\"":             false,
		"{\"\xed\xa0\x80\":1}": false,
		"\xef\xbb\xbf{}":       false,
	} {
		t.Run(raw, func(t *testing.T) {
			if err := CheckJSON([]byte(raw)); (err == nil) != want {
				t.Errorf(
					"check the JSON text %s: got error %v, want an error if and only if the text is invalid",
					raw,
					err,
				)
			}
		})
	}
}

func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,null,true,"\ud83d\ude00"]}`, `{"a":1,"a":2}`, `[NaN]`, "\"\\ud800\"", "{\"\xff\":1}", strings.Repeat("[", 70), "1 2", `"\\u"`, ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if CheckJSON(raw) != nil {
			return
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatalf(
				"ParseJSON accepted %q: want that encoding/json accepts the same text, got error %v",
				raw,
				err,
			)
		}
		again, err := json.Marshal(v)
		if err != nil {
			return // a number that no float64 holds
		}
		const replacement = "\ufffd"
		if bytes.Contains(again, []byte(replacement)) && !bytes.Contains(raw, []byte(replacement)) &&
			!bytes.Contains(bytes.ToLower(raw), []byte(`\ufffd`)) {
			t.Errorf(
				"ParseJSON accepted %q, which encoding/json decodes as %q: want an error, because the decoder replaced characters",
				raw,
				again,
			)
		}
		if bytes.Contains(again, []byte(`\u0000`)) && !bytes.Contains(raw, []byte(`\\u0000`)) {
			t.Errorf("ParseJSON accepted %q, want an error because of the NUL character", raw)
		}
	})
}

func TestParseJSON_RefusesLongArrays(t *testing.T) {
	t.Parallel()
	for items, want := range map[int]string{maxItems: "", maxItems + 1: `a list in "tags" has more than 10000 items`} {
		got := ""
		if err := CheckJSON([]byte(`{"port":{"tags":[[` + strings.TrimSuffix(strings.Repeat("1,", items), ",") + `]]}}`)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("check an array of %d items: got the error %q, want %q", items, got, want)
		}
	}
}

func TestParseJSON_RefusesNUL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`{"a":"b"}`:      true,
		`"\\u0000"`:      true,
		`{"a":"\u0000"}`: false,
		`{"\u0000":1}`:   false,
		`["\u0000"]`:     false,
	} {
		t.Run(raw, func(t *testing.T) {
			if err := CheckJSON([]byte(raw)); (err == nil) != want {
				t.Errorf(
					"check the JSON text %s: got error %v, want an error if and only if the text is invalid",
					raw,
					err,
				)
			}
		})
	}
}

// TestParseJSON_RefusesCostlyTextsBeforeDecoding puts a duplicate key at the beginning of each text, which
// the decoder would find first.
func TestParseJSON_RefusesCostlyTextsBeforeDecoding(t *testing.T) {
	t.Parallel()
	const many, deep, duplicate = "more than 100000 keys and values", "nested deeper than 64 levels", `duplicate key "a"`
	for name, c := range map[string]struct{ rest, want string }{
		"brackets":            {strings.Repeat("[", MaxBody/2), deep},
		"objects":             {strings.Repeat(`{"a":`, MaxBody/6), deep},
		"brackets and spaces": {strings.Repeat("[ ", MaxBody/4), deep},
		"numbers":             {"[" + strings.Repeat("1,", MaxBody/4), many},
		"lists of numbers":    {"[" + strings.Repeat("["+strings.Repeat("1,", maxItems-1)+"1],", 25), many},
		"keys":                {"{" + strings.Repeat(`"b":1,`, MaxBody/8), many},
		"empty lists":         {"[" + strings.Repeat("[],", MaxBody/4), many},
		"escaped quotes":      {"[" + strings.Repeat(`"\"",`, MaxBody/8), many},
		"one long text":       {`"` + strings.Repeat(`[{,:\"`, MaxBody/8) + `"}`, duplicate},
		"few values":          {"[1,2]}", duplicate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := `{"a":1,"a":` + c.rest
			if err := CheckJSON([]byte(raw)); err == nil || err.Error() != c.want || len(raw) > MaxBody {
				t.Errorf(
					"check a text of %d bytes: got error %v, want %q for a text of at most %d bytes",
					len(raw), err, c.want, MaxBody,
				)
			}
		})
	}
}

func TestParseJSON_LimitsAreExact(t *testing.T) {
	t.Parallel()
	nested := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	keys := func(n int) string { // an object with n keys and n values
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%d":1`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	for name, c := range map[string]struct {
		raw   string
		valid bool
	}{
		"64 levels":     {nested(maxDepth), true},
		"65 levels":     {nested(maxDepth + 1), false},
		"most keys":     {keys(maxTokens/2 - 1), true},
		"too many keys": {keys(maxTokens / 2), false},
		"more bytes":    {keys(maxTokens/2) + strings.Repeat(" ", MaxBody), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := CheckJSON([]byte(c.raw)); (err == nil) != c.valid {
				t.Errorf("check a text at the limit: got error %v, want an error: %t", err, !c.valid)
			}
		})
	}
}

// TestParseJSON_AcceptsTheLargestBodiesOfRealClients fills bodies up to their limit with what clients of
// OpenStack send.
func TestParseJSON_AcceptsTheLargestBodiesOfRealClients(t *testing.T) {
	t.Parallel()
	const id = "7f4a3c52-5e0e-4c39-9d2b-0f6d2f1f0a02"
	fill := func(limit int, head, tail string, item func(i int) string) string {
		var b strings.Builder
		b.WriteString(head)
		for i := 0; ; i++ {
			text := item(i)
			if i > 0 {
				text = "," + text
			}
			if b.Len()+len(text)+len(tail) > limit || i == maxItems {
				return b.String() + tail
			}
			b.WriteString(text)
		}
	}
	consumer := func(i int) string { return fmt.Sprintf("%08d-5e0e-4c39-9d2b-0f6d2f1f0a02", i) }
	for name, raw := range map[string]string{
		"bulk creation of small ports": fill(MaxBody, `{"ports":[`, `]}`, func(int) string { return `{"network_id":"` + id + `"}` }),
		"bulk creation of ports": fill(MaxBody, `{"ports":[`, `]}`, func(i int) string {
			return fmt.Sprintf(`{"network_id":"%s","name":"p%d","admin_state_up":true,"fixed_ips":[{"subnet_id":"%[1]s"}],"binding:vnic_type":"normal","device_id":"%[1]s","device_owner":"compute:nova","tags":[]}`, id, i)
		}),
		"bulk creation of security group rules": fill(MaxBody, `{"security_group_rules":[`, `]}`, func(i int) string {
			return fmt.Sprintf(`{"security_group_id":"%s","direction":"ingress","ethertype":"IPv4","protocol":"tcp","port_range_min":%d,"port_range_max":%[2]d}`, id, i)
		}),
		"allocations of many consumers": fill(MaxBody, `{`, `}`, func(i int) string {
			return `"` + consumer(i) + `":{"allocations":{"` + id + `":{"resources":{"VCPU":1,"MEMORY_MB":512,"DISK_GB":5}}},"project_id":"` + id + `","user_id":"` + id + `","consumer_generation":null,"consumer_type":"INSTANCE"}`
		}),
		"reshaping of many consumers": fill(MaxBody, `{"inventories":{"`+id+`":{"inventories":{"VCPU":{"total":8,"reserved":0,"min_unit":1,"max_unit":8,"step_size":1,"allocation_ratio":1.0}},"resource_provider_generation":1}},"allocations":{`, `}}`, func(i int) string {
			return `"` + consumer(i) + `":{"allocations":{"` + id + `":{"resources":{"VCPU":1,"MEMORY_MB":512}}},"project_id":"` + id + `","user_id":"` + id + `","consumer_generation":1}`
		}),
		"reports of agents": fill(MaxBody, `{"reports":[`, `]}`, func(int) string { return `{"port":"` + id + `","entity":"L2","host":"cmp-1"}` }),
		"journal entries": fill(MaxBatch, `{"changes":[`, `]}`, func(i int) string {
			return fmt.Sprintf(`{"operation":"create","object_type":"port","object_id":"%s","data":{"id":"%[1]s","revision_number":%d,"network_id":"%[1]s","mac_address":"fa:16:3e:00:00:01","fixed_ips":[{"subnet_id":"%[1]s","ip_address":"10.0.0.1"}],"admin_state_up":true,"security_groups":["%[1]s"],"binding:host_id":"cmp-1","binding:vif_details":{},"device_owner":"compute:nova","device_id":"%[1]s","tenant_id":"%[1]s","name":""}}`, id, i)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := CheckJSON([]byte(raw)); err != nil {
				t.Errorf("check a body of %d bytes: got error %v, want none", len(raw), err)
			}
		})
	}
}
