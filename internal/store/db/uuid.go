package db

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// encodeUUIDs has UUIDs sent as they are. Without it each is printed and read again on its way, since it is a
// driver.Valuer.
func encodeUUIDs(m *pgtype.Map) {
	m.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{func(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
		id, ok := value.(uuid.UUID)
		if !ok {
			return nil, nil, false
		}
		return &uuidPlan{}, pgtype.UUID{Bytes: id, Valid: true}, true
	}}, m.TryWrapEncodePlanFuncs...)
}

// uuidPlan encodes a UUID by the plan for the driver's own.
type uuidPlan struct{ next pgtype.EncodePlan }

// SetNext is how the driver says which plan that is.
func (p *uuidPlan) SetNext(next pgtype.EncodePlan) { p.next = next }

// Encode appends the value.
func (p *uuidPlan) Encode(value any, buf []byte) ([]byte, error) {
	return p.next.Encode(pgtype.UUID{Bytes: value.(uuid.UUID), Valid: true}, buf)
}
