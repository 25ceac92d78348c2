package figure

import (
	"context"

	"github.com/google/uuid"

	"berth/bench/harness"
)

// insertAllocation writes the rows of a new consumer with allocations of three resource classes of one
// provider, and checks nothing: neither the inventory nor a generation. A trigger of the database adds the
// amounts to the usage of the inventories.
const insertAllocation = `
	with changed as (
		update provider
		set generation = generation + 1, updated_at = now()
		where id = $1
		returning id, uuid, generation
	), made as (
		insert into consumer (uuid, project, user_id, type, generation)
		values ($2, 'bench', 'bench', 'INSTANCE', 1)
		returning id
	), allocated as (
		insert into allocation (consumer_id, provider_id, class_id, amount, position)
		select made.id, $1, c.id, c.amount, c.position
		from made
		cross join unnest($3::integer[], '{2,4096,20}'::integer[]) with ordinality as c (id, amount, position)
	)
	insert into generation_change (cause, actor, consumer, consumer_to, provider, provider_from, provider_to)
	select 'allocations', 'bench', $2, 1, uuid, generation - 1, generation
	from changed`

// openAllocationRows measures the baseline of allocations by concurrent clients: the same rows, written by
// the PostgreSQL driver alone in one statement. The parameter `together` says whether all clients use one
// provider, or each client uses a provider of its own.
func openAllocationRows(together bool) func(context.Context, *harness.Stack) (*Subject, error) {
	return func(_ context.Context, s *harness.Stack) (*Subject, error) {
		n := s.Clients
		if together {
			n = 1
		}
		var providers []int64
		var classes []int32
		return &Subject{
			setUp: func(ctx context.Context) error {
				ids, err := s.API.CreateProviders(ctx, n)
				if err != nil {
					return err
				}
				return s.Rows.QueryRow(ctx, `
					select array(select id from provider where uuid = any($1)),
						array(select id from resource_class where name = any('{VCPU,MEMORY_MB,DISK_GB}'))`, ids).
					Scan(&providers, &classes)
			},
			op: func(ctx context.Context, client int) (int, error) {
				_, err := s.Rows.Exec(ctx, insertAllocation, providers[client%n], uuid.NewString(), classes)
				return 1, err
			},
		}, nil
	}
}
