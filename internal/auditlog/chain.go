package auditlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Hash is the SHA-256 of a sealed record.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	raw, err := hex.DecodeString(string(text))
	if err != nil || len(raw) != len(h) {
		return fmt.Errorf("%q is not a hash: a hash has %d hexadecimal digits", text, 2*len(h))
	}
	copy(h[:], raw)
	return nil
}

// Position is a position in the chain: the sequence number and the hash of a record. The zero Position is the
// beginning of the chain.
type Position struct {
	Sequence int64 `json:"sequence"`
	Hash     Hash  `json:"hash"`
}

// String returns the position as SEQUENCE:HASH.
func (p Position) String() string { return fmt.Sprintf("%d:%s", p.Sequence, p.Hash) }

// ParsePosition parses SEQUENCE:HASH.
func ParsePosition(s string) (p Position, err error) {
	number, hash, _ := strings.Cut(s, ":")
	if p.Sequence, err = strconv.ParseInt(number, 10, 64); err == nil && p.Sequence >= 0 {
		err = p.Hash.UnmarshalText([]byte(hash))
	}
	if err != nil || p.Sequence < 0 {
		return Position{}, fmt.Errorf("%q is not a position in the audit log: want SEQUENCE:HASH", s)
	}
	return p, nil
}

// Next returns the position of the record that follows the position p. The hash covers the hash of the
// previous record, the sequence number and the JSON text of the record.
func (p Position) Next(record []byte) Position {
	next := Position{Sequence: p.Sequence + 1}
	h := sha256.New()
	h.Write(p.Hash[:])
	h.Write(strconv.AppendInt(nil, next.Sequence, 10))
	h.Write([]byte{'\n'})
	h.Write(record)
	h.Sum(next.Hash[:0])
	return next
}

// Sealed is a record in the chain.
type Sealed struct {
	Position
	Record json.RawMessage `json:"record"`
}

// Line returns the record with its position as one line of JSON, without a line break.
func (s Sealed) Line() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"sequence":%d,"hash":"%s","record":%s}`, s.Sequence, s.Hash, s.Record)
	return b.Bytes()
}

// Page is a part of the audit log, in the order of the sequence numbers.
type Page struct {
	Records []Sealed `json:"audit_records"`
	Anchor  Position `json:"anchor"`  // the newest record that the retention has deleted
	Head    Position `json:"head"`    // the newest sealed record
	Waiting int64    `json:"waiting"` // number of records that are not sealed yet
	// NextMarker is the sequence number of the last record of the page; 0: there is no next page.
	NextMarker int64 `json:"next_marker,omitempty"`
}

// Break is the first record at which the chain is broken.
type Break struct {
	Sequence int64
	Reason   string
}

func (b *Break) Error() string { return b.Reason }

// broken returns a Break with a formatted reason.
func broken(sequence int64, format string, args ...any) error {
	return &Break{sequence, fmt.Sprintf(format, args...)}
}

// Verifier checks the chain page by page. Its zero value begins at the anchor of the first page.
type Verifier struct {
	Remembered *Position // a position that the caller has kept outside berth; nil: none
	position   Position
	begun      bool
	found      bool
}

// Check checks the next page. The records of the page must follow the position of the Verifier.
func (v *Verifier) Check(p Page) error {
	// the retention may delete records while the Verifier reads
	if !v.begun || p.Anchor.Sequence > v.position.Sequence {
		v.begun = true
		if err := v.moveTo(p.Anchor); err != nil {
			return err
		}
	}
	for _, r := range p.Records {
		if r.Sequence <= v.position.Sequence && r.Sequence <= p.Anchor.Sequence {
			continue
		}
		next := v.position.Next(r.Record)
		switch {
		case r.Sequence != next.Sequence:
			return broken(next.Sequence, "record %d is missing: record %d follows record %d",
				next.Sequence, r.Sequence, v.position.Sequence)
		case r.Hash != next.Hash:
			return broken(r.Sequence,
				"record %d does not have the hash that follows from its content and from record %d",
				r.Sequence, v.position.Sequence)
		}
		if err := v.moveTo(next); err != nil {
			return err
		}
	}
	return nil
}

// moveTo sets the position and compares the position with the remembered position.
func (v *Verifier) moveTo(p Position) error {
	v.position = p
	if v.Remembered == nil || v.Remembered.Sequence != p.Sequence {
		return nil
	}
	if v.Remembered.Hash != p.Hash {
		return broken(
			p.Sequence,
			"record %d has the hash %s, and not the remembered hash %s: the log was written anew",
			p.Sequence, p.Hash, v.Remembered.Hash,
		)
	}
	v.found = true
	return nil
}

// Finish checks the end of the chain after the last page. The last page must contain all records after the
// page before.
func (v *Verifier) Finish(last Page) error {
	at, head := v.position.Sequence, last.Head.Sequence
	switch {
	case at < head:
		return broken(
			at+1, "record %d is missing: the log ends with record %d, but its head is record %d",
			at+1, at, head,
		)
	case at > head:
		return broken(
			head+1, "record %d is not a part of the log, because the head of the log is record %d",
			head+1, head,
		)
	case v.position != last.Head:
		return broken(at, "the hash of record %d is not the hash of the head", at)
	case v.Remembered == nil || v.found:
		return nil
	case v.Remembered.Sequence < last.Anchor.Sequence:
		return fmt.Errorf(
			"the retention has deleted the remembered record %d: the log begins after record %d",
			v.Remembered.Sequence,
			last.Anchor.Sequence,
		)
	default:
		return broken(
			at+1, "record %d is missing: the log ends with record %d, before the remembered record %d",
			at+1, at, v.Remembered.Sequence,
		)
	}
}
