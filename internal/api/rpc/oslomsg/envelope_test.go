package oslomsg

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDecodeRequest_RefusesInvalidMessages(t *testing.T) {
	t.Parallel()
	longText := strings.Repeat("a", maxText+1)
	for name, body := range map[string]string{
		"empty":             "",
		"no envelope":       "{}",
		"other version":     `{"oslo.version":"3.0","oslo.message":"{}"}`,
		"no method":         `{"oslo.version":"2.0","oslo.message":"{}"}`,
		"NUL in arguments":  `{"oslo.version":"2.0","oslo.message":"{\"method\":\"m\",\"args\":{\"a\":\"\\u0000\"}}"}`,
		"long method":       `{"oslo.version":"2.0","oslo.message":"{\"method\":\"` + longText + `\"}"}`,
		"long version":      `{"oslo.version":"2.0","oslo.message":"{\"method\":\"m\",\"version\":\"` + longText + `\"}"}`,
		"long namespace":    `{"oslo.version":"2.0","oslo.message":"{\"method\":\"m\",\"namespace\":\"` + longText + `\"}"}`,
		"long unique ID":    `{"oslo.version":"2.0","oslo.message":"{\"method\":\"m\",\"_unique_id\":\"` + longText + `\"}"}`,
		"long message ID":   `{"oslo.version":"2.0","oslo.message":"{\"method\":\"m\",\"_msg_id\":\"` + longText + `\",\"_reply_q\":\"q\"}"}`,
		"too large":         `{"oslo.version":"2.0","oslo.message":"` + strings.Repeat("a", maxBody) + `"}`,
		"nested too deeply": costlyBody(strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)),
		"too many values":   costlyBody("[" + strings.Repeat("[],", maxTokens/2) + "[]]"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := decodeRequest([]byte(body))
			if err == nil || len(err.Error()) > 200 || len(r.MessageID) > maxText && r.wantsReply() {
				t.Errorf("decode an invalid body: got %.300q, error %.300v; want a short error", r, err)
			}
		})
	}
}

func TestEncodeCast_IsDecodedAsRequestWithoutReply(t *testing.T) {
	t.Parallel()
	body, err := EncodeCast("port_update", "1.1", map[string]any{"port": "p"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := decodeRequest(body)
	if err != nil || r.Method != "port_update" || r.Version != "1.1" || string(r.Args) != `{"port":"p"}` ||
		len(r.UniqueID) != 32 ||
		r.wantsReply() {
		t.Errorf(
			"decode the cast that EncodeCast encoded: got %+v, error %v; want the same method, version and arguments, and no reply wanted",
			r,
			err,
		)
	}
}

func TestEncodeReply_HasResultOrFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure *Failure
		result  any
		class   string
	}{
		"result":  {nil, true, ""},
		"failure": {NewTypeError("bad %s", "host"), nil, "TypeError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := encodeReply(request{MessageID: "m"}, true, c.failure)
			if err != nil {
				t.Fatal(err)
			}
			var e envelope
			var m struct {
				Result    any     `json:"result"`
				Failure   *string `json:"failure"`
				Ending    bool    `json:"ending"`
				MessageID string  `json:"_msg_id"`
			}
			if err := json.Unmarshal(body, &e); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(e.Message), &m); err != nil {
				t.Fatal(err)
			}
			if m.Result != c.result || !m.Ending || m.MessageID != "m" ||
				(m.Failure != nil) != (c.class != "") {
				t.Errorf("encode a reply and decode it: got %s, want the result or failure of the call",
					e.Message)
			}
			if m.Failure != nil && !strings.Contains(*m.Failure, `"class":"`+c.class+`"`) {
				t.Errorf(
					"encode a reply with a failure: got the failure %s, want the class of the exception in it",
					*m.Failure,
				)
			}
		})
	}
}

func FuzzDecodeRequest(f *testing.F) {
	for _, message := range []string{`{"method":"m","args":{"a":1},"version":"1.1","_msg_id":"1","_reply_q":"r"}`, `{"method":"m\u0000"}`, `{"method":1}`, `[]`, `{"method":"m","args":`} {
		body, err := json.Marshal(envelope{Version: envelopeVersion, Message: message})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"oslo.version":2.0,"oslo.message":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := decodeRequest(body)
		if err != nil {
			return
		}
		if r.Method == "" || strings.Contains(r.Method+r.ReplyTo, "\x00") ||
			r.wantsReply() && len(r.ReplyTo) > MaxName {
			t.Errorf(
				"decode %q: got %+v, want a method, no NUL characters, and a reply only to a queue with a valid name",
				body,
				r,
			)
		}
		if len(r.Args) > 0 && !json.Valid(r.Args) {
			t.Errorf("decode %q: got the arguments %q, want valid JSON", body, r.Args)
		}
	})
}

// costlyBody returns a well-formed body whose message contains the value in its arguments.
func costlyBody(value string) string {
	message, _ := json.Marshal(`{"method":"m","args":{"devices":` + value + `}}`)
	return `{"oslo.version":"2.0","oslo.message":` + string(message) + `}`
}

func TestDecodeRequest_AcceptsTheLargestMessagesOfRealAgents(t *testing.T) {
	t.Parallel()
	device := `["fa:16:3e:00:00:01","0000:05:00.1"],`
	value := `[` + strings.Repeat(device, 1000) + `"7f4a3c52-5e0e-4c39-9d2b-0f6d2f1f0b01"]`
	if _, err := decodeRequest([]byte(costlyBody(value))); err != nil {
		t.Errorf("decode a message with 1000 devices: %v", err)
	}
}
