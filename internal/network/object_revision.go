package network

// ObjectRevision is an object with its revision number. The Revision is nil if there is no object.
type ObjectRevision struct {
	Type, ID string
	Revision *int64
}

// RevisionOf returns the revision of a network, subnet, port, trunk, security group or rule. For any other
// value, the result is empty.
func RevisionOf(object any) ObjectRevision {
	switch o := object.(type) {
	case Network:
		return ObjectRevision{"network", o.ID.String(), &o.Revision}
	case Subnet:
		return ObjectRevision{"subnet", o.ID.String(), &o.Revision}
	case Port:
		return ObjectRevision{"port", o.ID.String(), &o.Revision}
	case Trunk:
		return ObjectRevision{"trunk", o.ID.String(), &o.Revision}
	case SecurityGroup:
		return ObjectRevision{"security_group", o.ID.String(), &o.Revision}
	case SecurityRule:
		return ObjectRevision{"security_group_rule", o.ID.String(), &o.Revision}
	}
	return ObjectRevision{}
}
