package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// The largest body that is read, and the longest name that AMQP can carry.
const (
	maxBody = 4 << 20
	maxName = 255
)

// wireVersion is the version of oslo.messaging's envelope.
const wireVersion = "2.0"

// envelope is what every message is wrapped in: JSON that holds a text that is JSON again.
type envelope struct {
	Version string `json:"oslo.version"`
	Message string `json:"oslo.message"`
}

// request is a call or a cast as it stands in the envelope. The context, which is flattened beside these, decides
// nothing here: whoever can reach the broker is an agent.
type request struct {
	Method    string          `json:"method"`
	Args      json.RawMessage `json:"args"`
	Version   string          `json:"version"`
	Namespace string          `json:"namespace"`
	Unique    string          `json:"_unique_id"`
	MsgID     string          `json:"_msg_id"`
	ReplyTo   string          `json:"_reply_q"`
}

// call tells whether somebody waits for an answer.
func (r request) call() bool { return r.MsgID != "" && r.ReplyTo != "" && len(r.ReplyTo) <= maxName }

// open reads a message. What it returns beside an error is as much as could be read of it: enough to answer, maybe.
func open(body []byte) (request, error) {
	var r request
	if len(body) > maxBody {
		return r, fmt.Errorf("%d bytes are more than %d", len(body), maxBody)
	}
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return r, fmt.Errorf("envelope: %w", err)
	}
	if major, _, _ := strings.Cut(e.Version, "."); major != "2" {
		return r, fmt.Errorf("envelope of version %.20q", e.Version)
	}
	if err := json.Unmarshal([]byte(e.Message), &r); err != nil {
		return r, fmt.Errorf("message: %w", err)
	}
	switch {
	case r.Method == "":
		return r, errors.New("message without a method")
	case strings.Contains(e.Message, `\u0000`):
		return r, errors.New("message with a NUL character")
	}
	return r, nil
}

// seal wraps a message.
func seal(message map[string]any) ([]byte, error) {
	message["_unique_id"] = hexID()
	inner, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{wireVersion, string(inner)})
}

// reply is the answer to a call: its result or its failure.
func reply(r request, result any, failed error) ([]byte, error) {
	m := map[string]any{"result": result, "failure": nil, "ending": true, "_msg_id": r.MsgID}
	if failed != nil {
		text, err := json.Marshal(failureOf(failed))
		if err != nil {
			return nil, err
		}
		m["result"], m["failure"] = nil, string(text)
	}
	return seal(m)
}

// cast is a message that nobody answers, in berth's own name.
func cast(method, version string, args any) ([]byte, error) {
	m := map[string]any{"method": method, "version": version, "args": args}
	for _, k := range []string{"user", "user_id", "user_name", "project", "project_id", "project_name", "tenant_id", "tenant_name", "system_scope",
		"domain", "user_domain", "project_domain", "auth_token", "global_request_id", "resource_uuid"} {
		m["_context_"+k] = nil
	}
	m["_context_is_admin"], m["_context_is_admin_project"] = true, true
	m["_context_read_only"], m["_context_show_deleted"] = false, false
	m["_context_roles"], m["_context_request_id"] = []string{}, "req-"+uuid.NewString()
	m["_context_user_identity"] = "- - - - -"
	return seal(m)
}

// hexID is 32 hexadecimal digits by chance.
func hexID() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }
