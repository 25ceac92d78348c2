package networkstore

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
)

// MirrorSource returns the query for the networks or subnets that the controller must have. For any other
// object type, the result `ok` is false.
func MirrorSource(typ string) (source journalstore.Source, ok bool) {
	switch typ {
	case "network":
		return OwnSource("network", networkSelect, scanNetwork, mirrorNetwork), true
	case "subnet":
		return OwnSource("subnet", subnetSelect, scanSubnet, mirrorSubnet), true
	default:
		return journalstore.Source{}, false
	}
}

// OwnSource returns the query for the objects of a table of this package or of portstore.
func OwnSource[T any](
	table, sql string,
	scan pgx.RowToFunc[T],
	mirror func(T, journal.Operation) journal.Change,
) journalstore.Source {
	return journalstore.Source{
		From:      table + ` where true`,
		IDColumn:  "id",
		IDType:    "uuid",
		IsValidID: func(id string) bool { _, err := uuid.Parse(id); return err == nil && len(id) == 36 },
		Query: func(ctx context.Context, q db.Querier, clause string, args ...any) ([]journal.Change, error) {
			objects, err := db.QueryAll(ctx, q, scan, sql+` where true`+clause, args...)
			changes := make([]journal.Change, len(objects))
			for i, o := range objects {
				changes[i] = mirror(o, journal.Create)
			}
			return changes, err
		},
	}
}
