package rpc

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
	"berth/internal/store/db"
)

// pages says how a call reads many objects.
type pages struct {
	fields []string // that the call reads; nil: all
	size   int      // maximum number of objects that the call reads at once
}

var (
	// A port can have 200 kB of tags and DHCP options, a network 50 kB of tags, and a security group many
	// rules.
	allFields          = pages{size: 20}
	withoutLargeFields = pages{fields: []string{"id"}, size: 500}
	smallObjects       = pages{size: 500} // with all fields
)

// eachPage reads objects page by page with the function `list` and calls `use` with each page, in the order
// of the IDs. An object that was deleted meanwhile is missing. With more objects than one page, eachPage
// first waits for the call's place among the calls with large replies.
func eachPage[T any](
	ctx context.Context,
	list func(context.Context, db.Listing) ([]T, error),
	ids []uuid.UUID,
	of pages,
	use func([]T) error,
) error {
	if len(ids) > of.size {
		if err := oslomsg.LargeReply(ctx); err != nil {
			return err
		}
	}
	for page := range slices.Chunk(ids, of.size) {
		found, err := list(ctx, db.Listing{Where: []db.Condition{db.OneOfIDs("id", page)}, Fields: of.fields})
		if err != nil {
			return err
		}
		if err := use(found); err != nil {
			return err
		}
	}
	return nil
}

func (h *handlers) eachPortPage(
	ctx context.Context,
	ids []uuid.UUID,
	of pages,
	use func([]network.Port) error,
) error {
	return eachPage(ctx, h.Store.Ports, ids, of, use)
}

// maxSmallReply is the largest reply, in bytes, whose call needs no place among the calls with large replies.
const maxSmallReply = 1 << 20

// encodedObjects counts the bytes of the objects in a reply. The objects are encoded at once, because an
// encoded object needs less memory than the object.
type encodedObjects struct{ bytes int }

// encode encodes an object or a list of the reply. When the reply becomes larger than maxSmallReply, encode
// waits for the call's place among the calls with large replies. If the reply becomes larger than a reply may
// be, encode returns the failure of the call.
func (e *encodedObjects) encode(ctx context.Context, v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	e.bytes += len(raw)
	switch {
	case e.bytes > oslomsg.MaxReply:
		return nil, internalFailure(oslomsg.ReplyTooLarge)
	case e.bytes > maxSmallReply:
		return raw, oslomsg.LargeReply(ctx)
	}
	return raw, nil
}

// encodedList is a list of encoded objects in a reply.
type encodedList struct {
	encodedObjects
	objects []json.RawMessage
}

func newEncodedList() *encodedList { return &encodedList{objects: []json.RawMessage{}} }

// add encodes an object and adds it to the list.
func (l *encodedList) add(ctx context.Context, v any) error {
	raw, err := l.encode(ctx, v)
	if err != nil {
		return err
	}
	l.objects = append(l.objects, raw)
	return nil
}

// addGroup adds a security group. It encodes the rules one by one, because a group can have many of them.
func (l *encodedList) addGroup(ctx context.Context, g network.SecurityGroup, version string) error {
	before, rules := l.bytes, make([]json.RawMessage, len(g.Rules))
	for i, r := range g.Rules {
		raw, err := l.encode(ctx, securityGroupRuleObject(r, nestedRuleVersion))
		if err != nil {
			return err
		}
		rules[i] = raw
	}
	l.bytes = before // the encoded group contains the rules
	return l.add(ctx, securityGroupObject(g, rules, version))
}

// addAll adds objects in the form that the function `view` returns.
func addAll[T any](ctx context.Context, l *encodedList, all []T, view func(T) object) error {
	for _, v := range all {
		if err := l.add(ctx, view(v)); err != nil {
			return err
		}
	}
	return nil
}
