package network

import (
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
)

// devicePrefixes are the prefixes that interface names have before the beginning of the port ID.
var devicePrefixes = []string{"tap", "qvo", "qr-", "qg-", "sg-", "fg-", "ha-"}

// minIDDigits is the least number of hexadecimal digits of a port ID in a device name. A Linux interface name
// has at most 15 characters, which is enough for a prefix such as "tap" and minIDDigits digits of the port
// ID.
const minIDDigits = 8

// PortIDRange returns the lowest and the highest port ID that begin with the digits in the name of a device.
func PortIDRange(name string) (low, high uuid.UUID, ok bool) {
	for _, p := range devicePrefixes {
		if rest, cut := strings.CutPrefix(name, p); cut {
			name = rest
			break
		}
	}
	digits := strings.ReplaceAll(name, "-", "")
	if len(digits) < minIDDigits || len(digits) > 32 {
		return low, high, false
	}
	fill := func(with string) (id uuid.UUID, err error) {
		_, err = hex.Decode(id[:], []byte(digits+strings.Repeat(with, 32-len(digits))))
		return id, err
	}
	low, err := fill("0")
	if err != nil {
		return low, high, false
	}
	high, _ = fill("f")
	return low, high, true
}
