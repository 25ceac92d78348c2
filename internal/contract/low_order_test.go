package contract_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"testing"
	"time"

	"berth/internal/contract"
)

// lowOrderKeys are encodings of points of low order, with and without the sign bit.
var lowOrderKeys = []string{
	"0000000000000000000000000000000000000000000000000000000000000000",
	"0000000000000000000000000000000000000000000000000000000000000080",
	"0100000000000000000000000000000000000000000000000000000000000000",
	"0100000000000000000000000000000000000000000000000000000000000080",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
}

// TestReport_KeyOfLowOrderVerifiesNothing forges reports: with the neutral point as R and 0 as S, a signature
// is valid for a key of low order whenever the order divides the hash of the message, which a few attempts
// find without a private key.
func TestReport_KeyOfLowOrderVerifiesNothing(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	signature := make([]byte, ed25519.SignatureSize)
	signature[0] = 1
	for _, text := range lowOrderKeys {
		raw, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		key := ed25519.PublicKey(raw)
		if !contract.IsLowOrder(key) {
			t.Errorf("IsLowOrder(%s): got false, want true", text)
		}
		for i := range 64 {
			r := contract.Report{
				Host:      "cmp-1",
				Entity:    "L2",
				Revision:  int64(i),
				ExpiresAt: now.Add(time.Minute).Unix(),
				Signature: base64.StdEncoding.EncodeToString(signature),
			}
			if refused := r.Verify("port/1", []ed25519.PublicKey{key}, now); refused != contract.RefusedSignature {
				t.Fatalf("forged report with the key %s: got %q, want %q",
					text, refused, contract.RefusedSignature)
			}
		}
	}
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if contract.IsLowOrder(public) {
		t.Errorf("IsLowOrder of a generated key: got true, want false")
	}
}
