package inventorystore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// firstCustom is the smallest ID of custom traits and resource classes.
const firstCustom = 10000

// Traits returns the traits that match a filter, standard traits first.
func (s *Store) Traits(ctx context.Context, f inventory.TraitFilter) ([]inventory.Trait, error) {
	traits, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[inventory.Trait], `
		with recursive associated as ( -- jumps from one trait to the next in the index, because many providers have the same trait
			select min(trait_id) as id
			from provider_trait
			union all
			select (select min(trait_id) from provider_trait where trait_id > associated.id)
			from associated
			where id is not null)
		select name, created_at
		from trait
		where ($1::text[] is null or name = any($1))
			and ($2::text is null or starts_with(name, $2))
			and ($3::boolean is null or exists (select from associated where associated.id = trait.id) = $3)
		order by id`, f.Names, f.Prefix, f.Associated)
	if err != nil {
		return nil, fmt.Errorf("read traits: %w", err)
	}
	return traits, nil
}

// Trait returns the trait with the given name.
func (s *Store) Trait(ctx context.Context, name string) (inventory.Trait, error) {
	t := inventory.Trait{Name: name}
	err := s.db.QueryRow(ctx, `select created_at from trait where name = $1`, name).Scan(&t.ChangedAt)
	return t, db.NotFoundOr(err, "no trait %s", name)
}

// EnsureTrait creates a custom trait unless it exists, and reports whether the trait was created.
func (s *Store) EnsureTrait(ctx context.Context, name string) (t inventory.Trait, created bool, err error) {
	t.Name = name
	err = s.db.InTx(ctx, func(tx db.Tx) error {
		tag, err := tx.Exec(ctx, `
			insert into trait (name)
			select $1
			where not exists (select from trait where name = $1)
			on conflict do nothing`, name)
		if err != nil {
			return fmt.Errorf("create trait %s: %w", name, err)
		}
		created = tag.RowsAffected() == 1
		err = tx.QueryRow(ctx, `select created_at from trait where name = $1`, name).Scan(&t.ChangedAt)
		return db.NotFoundOr(err, "no trait %s", name)
	})
	return t, created, err
}

// DeleteTrait deletes a custom trait. If a provider has the trait, DeleteTrait returns a fault of kind
// Conflict.
func (s *Store) DeleteTrait(ctx context.Context, name string) error {
	return s.db.InTx(ctx, func(tx db.Tx) error {
		var id int32
		err := tx.QueryRow(ctx, `select id from trait where name = $1 for update`, name).Scan(&id)
		if err != nil {
			return db.NotFoundOr(err, "no trait %s", name)
		}
		if id < firstCustom {
			return inventory.Faultf(inventory.Invalid, "Cannot delete standard trait %s.", name)
		}
		_, err = tx.Exec(ctx, `delete from trait where id = $1`, id)
		if db.Violates(err, "provider_trait_trait") {
			return inventory.Faultf(inventory.Conflict,
				"The trait %s is in use by a resource provider.", name)
		}
		if err != nil {
			return fmt.Errorf("delete trait %s: %w", name, err)
		}
		return nil
	})
}

// ProviderTraits returns the traits of a provider, standard traits first.
func (s *Store) ProviderTraits(ctx context.Context, provider string) (inventory.Traits, error) {
	return providerTraits(ctx, s.db, provider)
}

func providerTraits(ctx context.Context, q db.Querier, provider string) (inventory.Traits, error) {
	rows, err := q.Query(ctx, `
		select p.generation, t.name, t.created_at
		from provider p
		left join (provider_trait pt join trait t on t.id = pt.trait_id) on pt.provider_id = p.id
		where p.uuid = $1
		order by t.id`, provider)
	if err != nil {
		return inventory.Traits{}, fmt.Errorf("read traits of provider %s: %w", provider, err)
	}
	var traits inventory.Traits
	var name *string
	var at *time.Time
	tag, err := pgx.ForEachRow(rows, []any{&traits.Generation, &name, &at}, func() error {
		if name != nil {
			traits.Names = append(traits.Names, *name)
			traits.ChangedAt = latest(traits.ChangedAt, *at)
		}
		return nil
	})
	if err != nil {
		return inventory.Traits{}, fmt.Errorf("read traits of provider %s: %w", provider, err)
	}
	if tag.RowsAffected() == 0 {
		return inventory.Traits{}, fmt.Errorf("%w: no provider %s", db.ErrNotFound, provider)
	}
	return traits, nil
}

// SetProviderTraits replaces the traits of a provider; the provider must have the given generation.
// SetProviderTraits increases the provider's generation by one only if the traits change.
func (s *Store) SetProviderTraits(
	ctx context.Context,
	provider string,
	generation int64,
	names []string,
) (inventory.Traits, error) {
	var after inventory.Traits
	err := s.db.InTx(ctx, func(tx db.Tx) error {
		p, err := lockProvider(ctx, tx, provider)
		if err != nil {
			return err
		}
		if err := p.checkGeneration(generation, generationChangedMessage); err != nil {
			return err
		}
		if err := checkTraits(ctx, tx, names); err != nil {
			return err
		}
		if err := replaceTraits(ctx, tx, p, names); err != nil {
			return err
		}
		after, err = providerTraits(ctx, tx, provider)
		return err
	})
	s.conflicts.record(err, inventory.CauseTraits)
	return after, err
}

// ClearProviderTraits removes all traits of a provider.
func (s *Store) ClearProviderTraits(ctx context.Context, provider string) error {
	return s.db.InTx(ctx, func(tx db.Tx) error {
		p, err := lockProvider(ctx, tx, provider)
		if err != nil {
			return err
		}
		return replaceTraits(ctx, tx, p, []string{})
	})
}

// replaceTraits replaces the traits of a locked provider, and increments the provider's generation if the
// traits change. All traits in `names` must exist.
func replaceTraits(ctx context.Context, tx db.Tx, p LockedProvider, names []string) error {
	changes := int64(0)
	count := func(tag pgconn.CommandTag) error {
		changes += tag.RowsAffected()
		return nil
	}
	batch := &pgx.Batch{}
	batch.Queue(`
		delete from provider_trait pt
		using trait t
		where pt.provider_id = $1 and pt.trait_id = t.id and t.name <> all($2)`, p.id, names).Exec(count)
	batch.Queue(`
		insert into provider_trait (provider_id, trait_id)
		select $1, id
		from trait
		where name = any($2)
		on conflict do nothing`, p.id, names).Exec(count)
	err := tx.SendBatch(ctx, batch).Close()
	if db.Violates(err, "provider_trait_trait") { // another writer has deleted the trait
		return inventory.Faultf(inventory.Invalid, "No such trait %s", strings.Join(names, ", "))
	}
	if err == nil && changes > 0 {
		generation, before := &pgx.Batch{}, p.generation
		p.QueueGeneration(ctx, generation, inventory.CauseTraits)
		p.changed(tx, before)
		err = tx.SendBatch(ctx, generation).Close()
	}
	if err != nil {
		return fmt.Errorf("replace traits of provider %s: %w", p.uuid, err)
	}
	return nil
}

// checkTraits returns a fault if some of the names are not traits. checkTraits locks the existing traits, so
// that no other transaction can delete them until the caller's transaction ends.
func checkTraits(ctx context.Context, tx db.Tx, names []string) error {
	known, err := db.QueryAll(ctx, tx, pgx.RowTo[string], `select name from trait where name = any($1) for key share`, names)
	if err != nil {
		return fmt.Errorf("read traits: %w", err)
	}
	unknown := slices.DeleteFunc(slices.Sorted(slices.Values(names)), func(name string) bool {
		return slices.Contains(known, name)
	})
	if len(unknown) > 0 {
		return inventory.Faultf(inventory.Invalid, "No such trait %s",
			strings.Join(slices.Compact(unknown), ", "))
	}
	return nil
}
