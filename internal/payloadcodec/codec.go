// Package payloadcodec encrypts the payloads that berth stores in Temporal: inputs, results, signals,
// updates, memos, summaries, failures and the records of local activities. The servers of Temporal never
// see the keys.
//
// Workflow IDs, task queues, the names of types and messages, search attributes and headers are no payloads
// or are needed by the server, so Temporal stores them in clear text.
package payloadcodec

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

// Setting is the name of the setting that contains the keys.
const Setting = "BERTH_TEMPORAL_ENCRYPTION_KEYS"

// The metadata of an encrypted payload. The names are those of the examples of Temporal's SDKs.
const (
	encoding      = "binary/encrypted"
	metadataKeyID = "encryption-key-id"
)

// Codec encrypts and decrypts payloads with AES-256-GCM. The zero value has no keys: it encrypts nothing,
// and returns an UnknownKeyError for an encrypted payload.
type Codec struct {
	keyID string                 // ID of the key that encrypts; empty: payloads are not encrypted
	keys  map[string]cipher.AEAD // by the ID of the key
}

// New returns a codec that decrypts with each of the keys, which have 32 bytes. If `encrypt` is true, the
// codec encrypts with the first key; otherwise it encrypts nothing.
func New(keys [][]byte, encrypt bool) (Codec, error) {
	c := Codec{keys: map[string]cipher.AEAD{}}
	for _, key := range keys {
		block, err := aes.NewCipher(key)
		if err != nil {
			return Codec{}, err
		}
		// The nonce of each payload is random, and is the beginning of the encrypted data.
		if c.keys[KeyID(key)], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return Codec{}, err
		}
	}
	if encrypt && len(keys) > 0 {
		c.keyID = KeyID(keys[0])
	}
	return c, nil
}

// KeyID returns the ID of a key: the first 16 hexadecimal digits of the key's SHA-256 sum. The ID follows
// from the key, so one ID never stands for two keys, and the ID does not disclose the key, which is random.
func KeyID(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8])
}

// EncryptsWith returns the ID of the key that encrypts payloads; empty: payloads are not encrypted.
func (c Codec) EncryptsWith() string { return c.keyID }

// HasKeys reports whether the codec can decrypt payloads.
func (c Codec) HasKeys() bool { return len(c.keys) > 0 }

// UnknownKeyError says that a payload is encrypted with a key that the process does not have.
type UnknownKeyError struct {
	KeyID   string
	HasKeys bool // the process has other keys
}

// Error implements error.
func (e *UnknownKeyError) Error() string {
	if !e.HasKeys {
		return fmt.Sprintf(
			"a payload in Temporal is encrypted with the key %q, but this process has no keys: set %s",
			e.KeyID,
			Setting,
		)
	}
	return fmt.Sprintf(
		"a payload in Temporal is encrypted with the key %q, which this process does not have: add the key to %s",
		e.KeyID,
		Setting,
	)
}

// associatedData returns what the encryption authenticates in addition to the data: the encoding and the ID
// of the key.
func associatedData(keyID string) []byte { return []byte(encoding + "\x00" + keyID) }

// Encode implements converter.PayloadCodec. If the codec does not encrypt, Encode returns the payloads
// unchanged.
func (c Codec) Encode(payloads []*common.Payload) ([]*common.Payload, error) {
	if c.keyID == "" {
		return payloads, nil
	}
	encoded := make([]*common.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("encrypt a payload: %w", err)
		}
		encoded[i] = &common.Payload{
			Metadata: map[string][]byte{
				converter.MetadataEncoding: []byte(encoding),
				metadataKeyID:              []byte(c.keyID),
			},
			Data: c.keys[c.keyID].Seal(nil, nil, plain, associatedData(c.keyID)),
		}
	}
	return encoded, nil
}

// Decode implements converter.PayloadCodec. Decode returns payloads that are not encrypted unchanged,
// because agents send clear text, and because older payloads are clear text.
func (c Codec) Decode(payloads []*common.Payload) ([]*common.Payload, error) {
	decoded := make([]*common.Payload, len(payloads))
	for i, p := range payloads {
		var err error
		if decoded[i], err = c.decode(p); err != nil {
			return nil, err
		}
	}
	return decoded, nil
}

func (c Codec) decode(p *common.Payload) (*common.Payload, error) {
	if string(p.GetMetadata()[converter.MetadataEncoding]) != encoding {
		return p, nil
	}
	id := string(p.GetMetadata()[metadataKeyID])
	key, ok := c.keys[id]
	if !ok {
		return nil, &UnknownKeyError{KeyID: id, HasKeys: c.HasKeys()}
	}
	plain, err := key.Open(nil, nil, p.GetData(), associatedData(id))
	if err != nil {
		return nil, fmt.Errorf("a payload in Temporal that is encrypted with the key %s was changed or is damaged", id)
	}
	decoded := &common.Payload{}
	if err := proto.Unmarshal(plain, decoded); err != nil {
		return nil, fmt.Errorf("decrypt a payload in Temporal: %w", err)
	}
	return decoded, nil
}
