package payloadcodec

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
)

// Apply sets the converters of a Temporal client, and of the workers of the client. If the codec does not
// encrypt, they write what the SDK's default converters write.
func (c Codec) Apply(o *client.Options) {
	o.DataConverter = c.DataConverter()
	plain := converter.GetDefaultDataConverter()
	o.FailureConverter = failureConverter{
		FailureConverter: temporal.NewDefaultFailureConverter(
			temporal.DefaultFailureConverterOptions{
				DataConverter:          o.DataConverter,
				EncodeCommonAttributes: c.keyID != "",
			},
		),
		clear: temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: plain}),
	}
}

// DataConverter returns a converter that writes values as the SDK's default converter does, and encrypts
// them.
//
// Agents need no keys. Therefore the results of their updates stay in clear text, and a message of an agent
// that cannot be decrypted is malformed, like any other that cannot be decoded.
func (c Codec) DataConverter() converter.DataConverter {
	return dataConverter{DataConverter: converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), c)}
}

// dataConverter is the converter of DataConverter.
type dataConverter struct {
	converter.DataConverter
	inWorkflow bool // the converter belongs to a running workflow
}

var _ workflow.ContextAware = dataConverter{}

// WithWorkflowContext implements workflow.ContextAware.
func (d dataConverter) WithWorkflowContext(workflow.Context) converter.DataConverter {
	d.inWorkflow = true
	return d
}

// WithContext implements workflow.ContextAware.
func (d dataConverter) WithContext(context.Context) converter.DataConverter { return d }

// ToPayload implements converter.DataConverter.
func (d dataConverter) ToPayload(value any) (*common.Payload, error) {
	if forAgent(value) {
		return converter.GetDefaultDataConverter().ToPayload(value)
	}
	return d.DataConverter.ToPayload(value)
}

// ToPayloads implements converter.DataConverter.
func (d dataConverter) ToPayloads(values ...any) (*common.Payloads, error) {
	if len(values) == 1 && forAgent(values[0]) {
		return converter.GetDefaultDataConverter().ToPayloads(values...)
	}
	return d.DataConverter.ToPayloads(values...)
}

// forAgent reports whether an agent reads the value. The result of a report names only entities, so it may
// stay in clear text.
func forAgent(value any) bool {
	_, ok := value.(contract.ReportResult)
	return ok
}

// FromPayload implements converter.DataConverter.
func (d dataConverter) FromPayload(payload *common.Payload, target any) error {
	return d.decoded(
		d.DataConverter.FromPayload(payload, target),
		&common.Payloads{Payloads: []*common.Payload{payload}},
		target,
	)
}

// FromPayloads implements converter.DataConverter.
func (d dataConverter) FromPayloads(payloads *common.Payloads, targets ...any) error {
	return d.decoded(d.DataConverter.FromPayloads(payloads, targets...), payloads, targets...)
}

// decoded handles the error of decoding payloads in a workflow. If the process lacks a key, an error would
// end the workflow or look like a failed activity. decoded panics instead, because the SDK then fails only
// the workflow task, and Temporal retries the task, perhaps in a process that has the key. A message of an
// agent does not cause a panic, so that nobody can stop a workflow by a message with an invented key: a
// signal keeps its encrypted payload, which the workflow counts as malformed, and an update is refused.
func (d dataConverter) decoded(err error, payloads *common.Payloads, targets ...any) error {
	if err == nil || !d.inWorkflow {
		return err
	}
	if len(targets) == 1 {
		switch targets[0].(type) {
		case *converter.RawValue:
			return converter.GetDefaultDataConverter().FromPayloads(payloads, targets...)
		case *contract.Report:
			return err
		}
	}
	if unknown := new(UnknownKeyError); errors.As(err, &unknown) {
		panic(err)
	}
	return err
}

// failureConverter is the failure converter of Apply.
type failureConverter struct {
	converter.FailureConverter
	clear converter.FailureConverter // does not encrypt
}

// ErrorToFailure implements converter.FailureConverter. The refusal of an agent's update stays in clear
// text, because the agent needs no keys. U+FFFD replaces the bytes of a text that are not UTF-8, for example
// those that an error quotes from the answer of another service: a worker could not send such a failure to
// Temporal, and the workflow task of a local activity would fail again and again.
func (f failureConverter) ErrorToFailure(err error) *failure.Failure {
	convert := f.FailureConverter.ErrorToFailure
	if e, ok := err.(*temporal.ApplicationError); ok && slices.Contains(contract.ReportErrors, e.Type()) {
		convert = f.clear.ErrorToFailure
	}
	converted := convert(err)
	for part := converted; part != nil; part = part.GetCause() {
		if !utf8.ValidString(part.GetMessage()) { // a failure that came from Temporal is not changed
			part.Message = strings.ToValidUTF8(part.GetMessage(), "\uFFFD")
		}
	}
	return converted
}
