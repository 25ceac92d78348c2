package operator

import (
	"context"
	"net/http"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/inventory"
)

// Limits of the number of changes in one answer. The answer lists the newest change first.
const (
	defaultLimit = 200
	maxLimit     = 1000
)

// change is the JSON format of one change of a generation.
type change struct {
	ID           int64           `json:"id"`
	At           time.Time       `json:"at"`
	Actor        string          `json:"actor"`
	RequestID    *string         `json:"request_id"`
	Cause        inventory.Cause `json:"cause"`
	Consumer     *string         `json:"consumer"`
	ConsumerFrom *int64          `json:"consumer_from"`
	ConsumerTo   *int64          `json:"consumer_to"`
	Provider     *string         `json:"provider"`
	ProviderFrom *int64          `json:"provider_from"`
	ProviderTo   *int64          `json:"provider_to"`
}

func changeOf(c inventory.GenerationChange) change {
	out := change{
		ID:    c.ID,
		At:    c.At,
		Actor: c.Actor,
		Cause: c.Cause,
	}
	if c.RequestID != "" {
		out.RequestID = &c.RequestID
	}
	if s := c.Consumer; s != nil {
		out.Consumer, out.ConsumerFrom, out.ConsumerTo = &s.UUID, s.From, s.To
	}
	if s := c.Provider; s != nil {
		out.Provider, out.ProviderFrom, out.ProviderTo = &s.UUID, s.From, s.To
	}
	return out
}

// history lists the changes of a consumer's or a provider's generation. If no consumer or provider has the
// UUID, the list is empty.
func history(
	read func(ctx context.Context, uuid string, before int64, limit int) ([]inventory.GenerationChange, error),
) osapi.Handler {
	return func(r *http.Request) (int, any, error) {
		query, err := positiveNumbers(r.URL.RawQuery, map[string]int64{"before": 0, "limit": defaultLimit})
		if err != nil {
			return 0, nil, err
		}
		found, err := read(r.Context(), r.PathValue("uuid"), query["before"],
			int(min(query["limit"], maxLimit)))
		if err != nil {
			return 0, nil, err
		}
		changes := make([]change, len(found))
		for i, c := range found {
			changes[i] = changeOf(c)
		}
		return http.StatusOK, map[string]any{"changes": changes}, nil
	}
}
