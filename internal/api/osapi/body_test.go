package osapi

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestParseJSON_RefusesInvalidUTF8AndLoneSurrogates(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`"\ud83d\ude00"`: true, `"\uD83D\uDE00x"`: true, `"\\ud83d"`: true, `"\\\\ud83d"`: true, `"\ufffd"`: true, "\"\ufffd\"": true, `"\n\u00e9"`: true,
		`"\ud83d"`: false, `"\ude00"`: false, `"\ud83dx"`: false, `"\ud83d\n"`: false, `"\ud83d\u0041"`: false, `"\ude00\ud83d"`: false,
		`"\ud83d\ud83d\ude00"`: false, `{"\udfff":1}`: false, `"\\\ud83d"`: false,
		"\"\xff\"": false, "{\"\xed\xa0\x80\":1}": false, "\xef\xbb\xbf{}": false,
	} {
		t.Run(raw, func(t *testing.T) {
			if err := CheckJSON([]byte(raw)); (err == nil) != want {
				t.Errorf("check the JSON text %s: got error %v, want an error if and only if the text is invalid", raw, err)
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
			t.Fatalf("ParseJSON accepted %q: want that encoding/json accepts the same text, got error %v", raw, err)
		}
		again, err := json.Marshal(v)
		if err != nil {
			return // a number that no float64 holds
		}
		const replacement = "\ufffd"
		if bytes.Contains(again, []byte(replacement)) && !bytes.Contains(raw, []byte(replacement)) && !bytes.Contains(bytes.ToLower(raw), []byte(`\ufffd`)) {
			t.Errorf("ParseJSON accepted %q, which encoding/json decodes as %q: want an error, because the decoder replaced characters", raw, again)
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
		`{"a":"b"}`: true, `"\\u0000"`: true, `{"a":"\u0000"}`: false, `{"\u0000":1}`: false, `["\u0000"]`: false,
	} {
		t.Run(raw, func(t *testing.T) {
			if err := CheckJSON([]byte(raw)); (err == nil) != want {
				t.Errorf("check the JSON text %s: got error %v, want an error if and only if the text is invalid", raw, err)
			}
		})
	}
}
