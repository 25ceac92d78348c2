package contract

import (
	"crypto/ed25519"
	"encoding/hex"
	"slices"
)

// lowOrder contains the encodings of all points of Ed25519 with an order up to 8, without the sign bit. The
// last two are not canonical. With such a public key, anyone can make signatures that are valid for many
// messages.
var lowOrder = []string{
	"0000000000000000000000000000000000000000000000000000000000000000",
	"0100000000000000000000000000000000000000000000000000000000000000",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
}

// IsLowOrder reports whether a public key is a point of low order. No private key has such a public key.
func IsLowOrder(key ed25519.PublicKey) bool {
	if len(key) != ed25519.PublicKeySize {
		return false
	}
	without := slices.Clone(key)
	without[len(without)-1] &= 0x7f
	return slices.Contains(lowOrder, hex.EncodeToString(without))
}
