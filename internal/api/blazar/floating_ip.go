package blazar

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/lease"
	"berth/internal/store/db"
)

type addressView struct {
	ID         string  `json:"id"`
	Network    string  `json:"floating_network_id"`
	Subnet     string  `json:"subnet_id"`
	IP         string  `json:"floating_ip_address"`
	Reservable bool    `json:"reservable"`
	CreatedAt  string  `json:"created_at"`
	UpdatedAt  *string `json:"updated_at"`
}

func addressViewOf(a lease.ReservableFloatingIP) addressView {
	return addressView{
		ID:         a.ID.String(),
		Network:    a.Network.String(),
		Subnet:     a.Subnet.String(),
		IP:         a.IP.String(),
		Reservable: a.Reservable,
		CreatedAt:  stamp(a.CreatedAt),
		UpdatedAt:  stampOrNull(a.UpdatedAt),
	}
}

func (b *handler) listAddresses(r *http.Request) (int, any, error) {
	return list[lease.ReservableFloatingIP]{
		name: "floatingips",
		noun: "floating IP",
		read: shorterIsLast(b.Store.FloatingIPs),
		find: func(ctx context.Context, marker string) (lease.ReservableFloatingIP, error) {
			id, _ := osapi.UUID(marker)
			return b.Store.FloatingIP(ctx, id)
		},
		view: func(a lease.ReservableFloatingIP) any { return addressViewOf(a) },
	}.answer(r)
}

func (b *handler) createAddress(r *http.Request) (int, any, error) {
	o, err := body(r)
	if err != nil {
		return 0, nil, err
	}
	if err := o.only("floating_network_id", "floating_ip_address"); err != nil {
		return 0, nil, err
	}
	if err := o.need("floating_network_id", "floating_ip_address"); err != nil {
		return 0, nil, err
	}
	network, err := o.uuid("floating_network_id")
	if err != nil {
		return 0, nil, err
	}
	text, err := o.text("floating_ip_address")
	if err != nil {
		return 0, nil, err
	}
	ip, err := address(text)
	if err != nil {
		return 0, nil, err
	}
	a, err := b.Store.RegisterFloatingIP(r.Context(), network, ip)
	if err != nil {
		return 0, nil, err
	}
	v := addressViewOf(a)
	// as in Blazar, only this answer formats created_at like the dates of a lease
	v.CreatedAt = date(a.CreatedAt)
	return http.StatusCreated, map[string]any{"floatingip": v}, nil
}

func (b *handler) showAddress(r *http.Request) (int, any, error) {
	id, err := addressID(r)
	if err != nil {
		return 0, nil, err
	}
	a, err := b.Store.FloatingIP(r.Context(), id)
	if err != nil {
		return 0, nil, addressNotFound(r, err)
	}
	return http.StatusOK, map[string]any{"floatingip": addressViewOf(a)}, nil
}

func (b *handler) deleteAddress(r *http.Request) (int, any, error) {
	id, err := addressID(r)
	if err != nil {
		return 0, nil, err
	}
	if err := b.Store.DeleteFloatingIP(r.Context(), id); err != nil {
		return 0, nil, addressNotFound(r, err)
	}
	return noContent(r)
}

// addressID returns the floating IP's UUID from the path.
func addressID(r *http.Request) (uuid.UUID, error) {
	text := r.PathValue("id")
	id, ok := osapi.UUID(text)
	if !ok {
		return id, objectNotFound("floatingip", text)
	}
	return id, nil
}

func addressNotFound(r *http.Request, err error) error {
	if errors.Is(err, db.ErrNotFound) {
		return objectNotFound("floatingip", r.PathValue("id"))
	}
	return err
}
