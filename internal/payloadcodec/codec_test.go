package payloadcodec_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"berth/internal/contract"
	"berth/internal/payloadcodec"
	"berth/internal/text"
)

// secret is a text that must not be in encrypted payloads.
const secret = "port web-1 of the project blue"

// newKey returns a key of 32 equal bytes.
func newKey(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func newCodec(t *testing.T, encrypt bool, keys ...[]byte) payloadcodec.Codec {
	t.Helper()
	c, err := payloadcodec.New(keys, encrypt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// encode returns the payload of the secret.
func encode(t *testing.T, c payloadcodec.Codec) *common.Payload {
	t.Helper()
	p, err := c.DataConverter().ToPayload(secret)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// decode returns the text of a payload.
func decode(c payloadcodec.Codec, p *common.Payload) (text string, err error) {
	err = c.DataConverter().FromPayload(p, &text)
	return text, err
}

func TestCodec_EncryptsAndDecrypts(t *testing.T) {
	t.Parallel()
	c := newCodec(t, true, newKey(1))
	first, second := encode(t, c), encode(t, c)
	for _, p := range []*common.Payload{first, second} {
		if strings.Contains(p.String(), "web-1") {
			t.Errorf("encrypted payload: got %s, want no clear text", p)
		}
		if got, err := decode(c, p); got != secret || err != nil {
			t.Errorf("decrypt: got %q, error %v; want %q", got, err, secret)
		}
	}
	if bytes.Equal(first.GetData(), second.GetData()) {
		t.Error("two encryptions of one value are equal, want different nonces")
	}
}

// Temporal limits a summary to 400 bytes.
func TestCodec_LongestSummaryFitsIntoTheLimitOfTemporal(t *testing.T) {
	t.Parallel()
	p, err := newCodec(t, true, newKey(1)).DataConverter().ToPayload(text.Summary(strings.Repeat("x", 400)))
	if size := len(p.GetData()); err != nil || size < 340 || size > 400 {
		t.Errorf("encrypted summary: got %d bytes, error %v; want 340 to 400", size, err)
	}
}

func TestCodec_DecryptsWithEachKeyAndEncryptsWithTheFirst(t *testing.T) {
	t.Parallel()
	old, next := newKey(1), newKey(2)
	rotated := newCodec(t, true, next, old)
	if got, err := decode(rotated, encode(t, newCodec(t, true, old))); got != secret || err != nil {
		t.Errorf("decrypt a payload of the old key: got %q, error %v; want %q", got, err, secret)
	}
	if got, err := decode(newCodec(t, true, next), encode(t, rotated)); got != secret || err != nil {
		t.Errorf("decrypt a payload after the rotation without the old key: got %q, error %v", got, err)
	}
}

func TestCodec_UnknownKeyIsNamedWithTheSetting(t *testing.T) {
	t.Parallel()
	p := encode(t, newCodec(t, true, newKey(1)))
	for name, c := range map[string]struct {
		codec payloadcodec.Codec
		says  string
	}{
		"no keys":     {payloadcodec.Codec{}, "set BERTH_TEMPORAL_ENCRYPTION_KEYS"},
		"another key": {newCodec(t, true, newKey(2)), "add the key to BERTH_TEMPORAL_ENCRYPTION_KEYS"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(c.codec, p)
			unknown := new(payloadcodec.UnknownKeyError)
			if !errors.As(err, &unknown) || unknown.KeyID != payloadcodec.KeyID(newKey(1)) ||
				!strings.Contains(err.Error(), unknown.KeyID) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("decrypt with %s: got error %v, want one that names the key and says %q", name, err, c.says)
			}
		})
	}
}

func TestCodec_RefusesChangedPayloads(t *testing.T) {
	t.Parallel()
	c := newCodec(t, true, newKey(1), newKey(2))
	for name, change := range map[string]func(*common.Payload){
		"data":     func(p *common.Payload) { p.Data[len(p.Data)/2] ^= 1 },
		"nonce":    func(p *common.Payload) { p.Data[0] ^= 1 },
		"cut":      func(p *common.Payload) { p.Data = p.Data[:10] },
		"empty":    func(p *common.Payload) { p.Data = nil },
		"key's ID": func(p *common.Payload) { p.Metadata["encryption-key-id"] = []byte(payloadcodec.KeyID(newKey(2))) },
	} {
		t.Run(name, func(t *testing.T) {
			p := encode(t, c)
			change(p)
			if got, err := decode(c, p); err == nil || got != "" {
				t.Errorf("decrypt a payload with another %s: got %q, error %v; want an error", name, got, err)
			}
		})
	}
}

// Without the first key, payloads are as they were before berth could encrypt.
func TestCodec_WithoutEncryptionPayloadsAreTheDefaultOnes(t *testing.T) {
	t.Parallel()
	plain, err := converter.GetDefaultDataConverter().ToPayload(secret)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]payloadcodec.Codec{
		"no keys":      {},
		"only decrypt": newCodec(t, false, newKey(1)),
	} {
		t.Run(name, func(t *testing.T) {
			if got := encode(t, c); !proto.Equal(got, plain) {
				t.Errorf("payload: got %s, want %s", got, plain)
			}
			var o client.Options
			c.Apply(&o)
			failed := temporal.NewApplicationError(secret, "Failed", secret)
			want := temporal.GetDefaultFailureConverter().ErrorToFailure(failed)
			if got := o.FailureConverter.ErrorToFailure(failed); !proto.Equal(got, want) {
				t.Errorf("failure: got %s, want %s", got, want)
			}
		})
	}
	if got, err := decode(newCodec(t, true, newKey(1)), plain); got != secret || err != nil {
		t.Errorf("decode clear text with keys: got %q, error %v; want %q", got, err, secret)
	}
	if got, err := decode(
		newCodec(t, false, newKey(1)),
		encode(t, newCodec(t, true, newKey(1))),
	); got != secret || err != nil {
		t.Errorf("decrypt without encryption: got %q, error %v; want %q", got, err, secret)
	}
}

func TestApply_EncryptsMessagesOfFailures(t *testing.T) {
	t.Parallel()
	var o client.Options
	newCodec(t, true, newKey(1)).Apply(&o)
	f := o.FailureConverter.ErrorToFailure(temporal.NewApplicationError(secret, "Failed", secret))
	if strings.Contains(f.String(), "web-1") || f.GetApplicationFailureInfo().GetType() != "Failed" {
		t.Errorf("failure: got %s, want its type and no clear text", f)
	}
	var back *temporal.ApplicationError
	if err := o.FailureConverter.FailureToError(f); !errors.As(err, &back) || back.Message() != secret {
		t.Errorf("error of the failure: got %v, want the message %q", err, secret)
	}
}

// TestApply_AgentsNeedNoKeys reads, without keys, what an agent gets.
func TestApply_AgentsNeedNoKeys(t *testing.T) {
	t.Parallel()
	var o client.Options
	newCodec(t, true, newKey(1)).Apply(&o)
	result := contract.ReportResult{Status: "ACTIVE", Remaining: []string{"DHCP"}}
	payloads, err := o.DataConverter.ToPayloads(result)
	if err != nil {
		t.Fatal(err)
	}
	var got contract.ReportResult
	if err := converter.GetDefaultDataConverter().FromPayloads(payloads, &got); err != nil ||
		got.Status != "ACTIVE" {
		t.Errorf("result of an update: got %+v, error %v; want %+v", got, err, result)
	}
	for _, kind := range contract.ReportErrors {
		f := o.FailureConverter.ErrorToFailure(temporal.NewNonRetryableApplicationError("not signed", kind, nil))
		if f.GetMessage() != "not signed" {
			t.Errorf("failure with the type %s: got the message %q, want clear text", kind, f.GetMessage())
		}
	}
	plain, err := converter.GetDefaultDataConverter().ToPayloads(contract.Report{Entity: "L2", Host: "cmp-1"})
	if err != nil {
		t.Fatal(err)
	}
	var report contract.Report
	if err := o.DataConverter.FromPayloads(plain, &report); err != nil || report.Entity != "L2" {
		t.Errorf("report in clear text: got %+v, error %v; want the entity L2", report, err)
	}
}
