package figure

import (
	"context"
	"crypto/rand"

	"berth/bench/harness"
	"berth/internal/contract"
	"berth/internal/payloadcodec"
)

// payloadsEach is the number of payloads that one operation of the figure `payloads` converts.
const payloadsEach = 100

// openPayloads measures the conversion of an agent's report into a payload of Temporal and back, with or
// without encryption. It uses no server.
func openPayloads(encrypt bool) func(context.Context, *harness.Stack) (*Subject, error) {
	return func(context.Context, *harness.Stack) (*Subject, error) {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		codec, err := payloadcodec.New([][]byte{key}, encrypt)
		if err != nil {
			return nil, err
		}
		converter := codec.DataConverter()
		return &Subject{op: func(context.Context, int) (int, error) {
			for range payloadsEach {
				payload, err := converter.ToPayload(l2Report)
				if err != nil {
					return 0, err
				}
				var report contract.Report
				if err := converter.FromPayload(payload, &report); err != nil {
					return 0, err
				}
			}
			return payloadsEach, nil
		}}, nil
	}
}
