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

// portFields are the fields of the ports that a call reads.
type portFields struct {
	names []string // nil: all
	page  int      // maximum number of ports that the call reads at once
}

var (
	// A port can have 200 kB of tags and DHCP options.
	allFields          = portFields{page: 20}
	withoutLargeFields = portFields{names: []string{"id"}, page: 500}
)

// eachPortPage reads ports page by page and calls `use` with each page, in the order of the IDs. A port that
// was deleted meanwhile is missing. With more ports than one page, eachPortPage first waits for its place
// among the calls with large replies.
func (h *handlers) eachPortPage(
	ctx context.Context,
	ids []uuid.UUID,
	fields portFields,
	use func([]network.Port) error,
) error {
	if len(ids) > fields.page {
		if err := oslomsg.LargeReply(ctx); err != nil {
			return err
		}
	}
	for page := range slices.Chunk(ids, fields.page) {
		ports, err := h.Store.Ports(ctx,
			db.Listing{Where: []db.Condition{db.OneOfIDs("id", page)}, Fields: fields.names})
		if err != nil {
			return err
		}
		if err := use(ports); err != nil {
			return err
		}
	}
	return nil
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

// portList is a list of encoded ports.
type portList struct {
	encodedObjects
	ports []json.RawMessage
}

// add adds ports in the form that the function `view` returns.
func (l *portList) add(ctx context.Context, ports []network.Port, view func(network.Port) object) error {
	for _, p := range ports {
		raw, err := l.encode(ctx, view(p))
		if err != nil {
			return err
		}
		l.ports = append(l.ports, raw)
	}
	return nil
}
