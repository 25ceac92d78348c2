package portstore

import (
	"context"

	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/store/outbox"
)

// BlockNetworks registers networks as a blockable type. When CompleteBlock removes the last block of a
// network, the transaction enqueues a note.
func BlockNetworks() {
	blockableTypes["network"] = blockableType{
		table: "network",
		onChange: func(ctx context.Context, tx *transaction, id uuid.UUID, entity string, blocked bool) error {
			if entity == "" || blocked {
				return nil
			}
			return outbox.Enqueue(ctx, tx,
				contract.Nudge{Workflow: "Network", ID: "network/" + id.String(), Summary: entity})
		},
	}
}

// ForgetNetworks undoes BlockNetworks.
func ForgetNetworks() { delete(blockableTypes, "network") }

// The assembled queries of ports, so that a test can compare them with their golden files.
var (
	PortSQL       = portSelect + portFrom
	SmallPortSQL  = smallPortSelect + portFrom
	LockedPortSQL = lockedPortSelect
)
