package inventorystore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/store/db"
)

// allocatedSQL is the sum of the allocations from the inventory i.
const allocatedSQL = `coalesce((select sum(amount) from allocation where provider_id = i.provider_id and class_id = i.class_id), 0)`

// usagePage is the number of inventories that one query compares with their allocations.
const usagePage = 500

// inventoryPlace identifies an inventory. Provider and Class are the names for people.
type inventoryPlace struct {
	ProviderID int64
	ClassID    int32
	Provider   string
	Class      string
	Wrong      bool // the usage is not the sum of the allocations
}

// RepairUsage compares the usage of each inventory with the sum of the allocations from the inventory, and
// corrects each usage that differs. The database keeps the usages itself, so a usage can differ only after
// somebody has changed rows without the triggers of the table allocation. RepairUsage returns the number of
// inventories, and a description of each inventory whose usage it has corrected.
func (s *Store) RepairUsage(ctx context.Context) (compared int64, corrected []string, err error) {
	last := inventoryPlace{ProviderID: -1}
	for {
		page, err := db.QueryAll(ctx, s.db, pgx.RowToStructByName[inventoryPlace], `
			select i.provider_id, i.class_id, p.uuid as provider, c.name as class,
				i.used <> `+allocatedSQL+` as wrong
			from (
				select provider_id, class_id, used
				from inventory
				where (provider_id, class_id) > ($1, $2)
				order by provider_id, class_id
				limit $3) i
			join provider p on p.id = i.provider_id
			join resource_class c on c.id = i.class_id
			order by i.provider_id, i.class_id`, last.ProviderID, last.ClassID, usagePage)
		if err != nil {
			return compared, corrected, fmt.Errorf(
				"compare the usage of inventories with the allocations: %w",
				err,
			)
		}
		compared += int64(len(page))
		for _, i := range page {
			if !i.Wrong {
				continue
			}
			if err := s.correctUsage(ctx, i); err != nil {
				return compared, corrected, err
			}
			corrected = append(corrected, fmt.Sprintf("%s of provider %s", i.Class, i.Provider))
		}
		if len(page) < usagePage {
			return compared, corrected, nil
		}
		last = page[len(page)-1]
	}
}

// correctUsage sets the usage of an inventory to the sum of its allocations. While the transaction holds the
// lock of the provider, nobody else allocates from the provider.
func (s *Store) correctUsage(ctx context.Context, i inventoryPlace) error {
	err := s.db.InTx(ctx, func(tx db.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(`select from provider where id = $1 for no key update`, i.ProviderID)
		batch.Queue(`
			update inventory i
			set used = `+allocatedSQL+`
			where i.provider_id = $1 and i.class_id = $2`, i.ProviderID, i.ClassID)
		return tx.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return fmt.Errorf("correct the usage of %s of provider %s: %w", i.Class, i.Provider, err)
	}
	return nil
}
