package network

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"
)

// A port or a trunk that has MaxBlocks blocks accepts no further block with an owner.
const MaxBlocks = 32

// MaxBlockSeconds is the largest time limit that a block may have, in seconds: one year.
const MaxBlockSeconds = 365 * 24 * 60 * 60

// maxOwnerLength is the maximum length of the host and of the owner of a block, in bytes.
const maxOwnerLength = 255

// entityName matches the names of the entities that can have a block with an owner. The search attribute
// BerthWaitingFor contains the names of all entities that block a port, and Temporal limits the attribute to
// 2,048 bytes.
var entityName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 _.-]{0,47}$`)

// CheckEntity returns an error if clients may not add or remove blocks of the entity.
func CheckEntity(entity string) error {
	switch {
	case entity == DHCP || entity == L2:
		return fmt.Errorf("the blocks of %s follow from the state of the port; agents complete them", entity)
	case !entityName.MatchString(entity):
		return fmt.Errorf("the name of an entity must match %s", entityName)
	}
	return nil
}

// CheckOwnedBlock returns an error if a report with the event ReportBlock or ReportUnblock is not valid.
// CheckOwnedBlock accepts all reports with other events.
func CheckOwnedBlock(r Report) error {
	if r.Event != ReportBlock && r.Event != ReportUnblock {
		return nil
	}
	for _, text := range []string{r.Host, r.Owner} {
		if len(text) > maxOwnerLength || !utf8.ValidString(text) || !IsSingleLine(text) {
			return fmt.Errorf(
				"host and owner must be UTF-8 with at most %d bytes and without control characters",
				maxOwnerLength,
			)
		}
	}
	if r.TimeoutSeconds < 0 || r.TimeoutSeconds > MaxBlockSeconds {
		return fmt.Errorf("timeout_seconds must be between 0 and %d", MaxBlockSeconds)
	}
	return CheckEntity(r.Entity)
}

// applyOwnedBlock adds or removes a block that has an owner. If the port already has a block for the entity,
// a second ReportBlock does nothing.
func (p Port) applyOwnedBlock(r Report, now time.Time) (Port, bool) {
	at := p.blockIndex(r.Entity)
	switch {
	case CheckOwnedBlock(r) != nil:
		return p, false
	case r.Event == ReportUnblock && at >= 0:
		p.Blocks = slices.Delete(p.Blocks, at, at+1)
		return p, true
	case r.Event == ReportBlock && at < 0 && len(p.Blocks) < MaxBlocks:
		p.Blocks = append(p.Blocks, NewOwnedBlock(r, now))
		return p, true
	default:
		return p, false
	}
}

// NewOwnedBlock returns the block that a report with the event ReportBlock adds at the time `now`. If the
// report names no owner, the owner of the block is the entity.
func NewOwnedBlock(r Report, now time.Time) Block {
	b := Block{
		Entity:      r.Entity,
		Host:        r.Host,
		MinRevision: 1,
		Since:       now,
		Owner:       cmp.Or(r.Owner, r.Entity),
	}
	if r.TimeoutSeconds > 0 {
		deadline := now.Add(time.Duration(r.TimeoutSeconds) * time.Second)
		b.Deadline, b.Fatal = &deadline, r.Fatal
	}
	return b
}
