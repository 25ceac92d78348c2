package networkstore

import "context"

// CreateAll creates one object from each draft, and then calls each function in `finish` with all created
// objects, in one transaction, which inTx begins.
func CreateAll[T interface{ Audit(before, after any) }, D, M any](
	ctx context.Context,
	inTx func(context.Context, func(T) error) error,
	drafts []D,
	create func(context.Context, T, D) (M, error),
	finish ...func(context.Context, T, []M) error,
) ([]M, error) {
	var created []M
	err := inTx(ctx, func(tx T) error {
		created = make([]M, 0, len(drafts))
		for _, d := range drafts {
			m, err := create(ctx, tx, d)
			if err != nil {
				return err
			}
			created = append(created, m)
			tx.Audit(nil, m)
		}
		for _, f := range finish {
			if err := f(ctx, tx, created); err != nil {
				return err
			}
		}
		return nil
	})
	return created, err
}
