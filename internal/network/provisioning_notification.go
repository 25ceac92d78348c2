package network

import "github.com/google/uuid"

// ProvisioningNotification tells the webhook of BERTH_PROVISIONING_WEBHOOK_URL that no entity blocks a port
// or a trunk any more, as Neutron's callback event PROVISIONING_COMPLETE does.
type ProvisioningNotification struct {
	ObjectType string    `json:"object_type"` // port or trunk
	ObjectID   uuid.UUID `json:"object_id"`
	Project    string    `json:"project_id"`
	Status     string    `json:"status"`
	// the entity that completed its part last; empty if the last block was removed
	CompletedBy string `json:"completed_by"`
	Host        string `json:"host,omitempty"`
	DeviceOwner string `json:"device_owner,omitempty"`
	DeviceID    string `json:"device_id,omitempty"`
}

// Type returns the type of the notification.
func (n ProvisioningNotification) Type() string { return n.ObjectType + ".provisioning_complete" }

// ProvisioningNotification returns the notification that nothing blocks the port any more. The result `ok` is
// false if entities block the port, or if the last block ended because the port lost its binding. The
// parameter `entity` is the entity that completed its part last, or empty.
func (p Port) ProvisioningNotification(entity string) (n ProvisioningNotification, ok bool) {
	n = ProvisioningNotification{
		ObjectType:  "port",
		ObjectID:    p.ID,
		Project:     p.Project,
		Status:      p.Status,
		CompletedBy: entity,
		Host:        p.Host,
		DeviceOwner: p.DeviceOwner,
		DeviceID:    p.DeviceID,
	}
	return n, len(p.Blocks) == 0 && (entity != "" || p.Status == Active)
}

// ProvisioningNotification returns the notification that nothing blocks the trunk any more. The parameter
// `entity` is the entity that completed its part last, or empty.
func (t Trunk) ProvisioningNotification(entity string) ProvisioningNotification {
	return ProvisioningNotification{
		ObjectType:  "trunk",
		ObjectID:    t.ID,
		Project:     t.Project,
		Status:      t.Status,
		CompletedBy: entity,
	}
}
