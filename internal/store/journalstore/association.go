package journalstore

import (
	"context"
	"encoding/json"
	"fmt"

	"berth/internal/journal"
	"berth/internal/store/db"
)

// saveAssociation applies the creation or deletion of an association of a BGPVPN. saveAssociation returns the
// change to record: the update of the BGPVPN with the resulting lists of networks and routers. The
// association has a row of its own, because the request that deletes it contains only the ID of the
// association, not the ID of the BGPVPN.
func saveAssociation(
	ctx context.Context,
	tx db.Tx,
	c journal.Change,
	before *journal.Change,
) ([]journal.Change, error) {
	data := c.Data
	if before != nil {
		data = before.Data
	}
	a, err := journal.ReadAssociation(c.Object.Type, data)
	if err != nil {
		return nil, err
	}
	vpn, err := lockObject(ctx, tx, a.VPN)
	if err != nil {
		return nil, err
	}
	if vpn == nil {
		return nil, fmt.Errorf("%w: %s %s", db.ErrNotFound, a.VPN.Type, a.VPN.ID)
	}
	// Read the column `data` itself: unlike objectColumns, it has no revision_number unless the service that
	// recorded the change has sent one.
	var own json.RawMessage
	if err := tx.QueryRow(ctx, `select data from mirror_object where object_type = $1 and object_id = $2`, a.VPN.Type, a.VPN.ID).Scan(&own); err != nil {
		return nil, err
	}
	if c.Operation == journal.Delete {
		vpn.Data, err = a.RemoveFrom(own)
	} else {
		vpn.Data, err = a.AddTo(own)
	}
	if err != nil {
		return nil, err
	}
	if c.Operation == journal.Delete {
		_, err = tx.Exec(ctx, `delete from mirror_object where object_type = $1 and object_id = $2`,
			c.Object.Type, c.Object.ID)
	} else {
		_, err = tx.Exec(ctx, `
			insert into mirror_object (object_type, object_id, data, parents, project, name)
			values ($1, $2, $3, array[$4::text], $5, $6)`, c.Object.Type, c.Object.ID, c.Data, parentKey(a.VPN), c.Project, c.Name)
	}
	if err != nil {
		return nil, err
	}
	vpn.Operation = journal.Update
	return SaveObject(ctx, tx, *vpn)
}

// deleteAssociations deletes the rows of the associations of a deleted object. No journal entry is necessary:
// the controller stores the associations as lists in the object, and deletes them with the object.
func deleteAssociations(ctx context.Context, tx db.Tx, r journal.Ref) error {
	types := journal.AssociationTypes(r.Type)
	if len(types) == 0 {
		return nil
	}
	_, err := tx.Exec(
		ctx, `delete from mirror_object where object_type = any($1) and parents @> array[$2::text]`,
		types, parentKey(r),
	)
	return err
}
