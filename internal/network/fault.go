package network

import "fmt"

// Kind is the type of a Neutron API error (`NeutronError.type`).
type Kind string

// Kinds of faults, which are the types of Neutron's API errors.
const (
	InvalidInput                  Kind = "InvalidInput"
	BadRequest                    Kind = "BadRequest"
	InvalidPool                   Kind = "InvalidAllocationPool"
	SecurityGroupNotFound         Kind = "SecurityGroupNotFound"
	OutOfBoundsPool               Kind = "OutOfBoundsAllocationPool"
	TooManyDNS                    Kind = "DNSNameServersExhausted"
	TooManyRoutes                 Kind = "HostRoutesExhausted"
	OverlappingPools              Kind = "OverlappingAllocationPools"
	GatewayInUse                  Kind = "GatewayIpInUse"
	GatewayInPool                 Kind = "GatewayConflictWithAllocationPools"
	NetworkNotFound               Kind = "NetworkNotFound"
	SubnetNotFound                Kind = "SubnetNotFound"
	PortNotFound                  Kind = "PortNotFound"
	AgentNotFound                 Kind = "AgentNotFound"
	MACInUse                      Kind = "MacAddressInUse"
	AddressInUse                  Kind = "IpAddressAlreadyAllocated"
	InvalidIPForNetwork           Kind = "InvalidIpForNetwork"
	InvalidIPForSubnet            Kind = "InvalidIpForSubnet"
	AllocationOnAutoAddressSubnet Kind = "AllocationOnAutoAddressSubnet"
	IPAddressGenerationFailure    Kind = "IpAddressGenerationFailure"
	NoMatchingSubnet              Kind = "IpAddressGenerationFailureNoMatchingSubnet"
	InvalidServiceType            Kind = "InvalidSubnetServiceType"
	ServiceTypeNoText             Kind = "InvalidInputSubnetServiceType"
	VLANInUse                     Kind = "VlanIdInUse"
	TunnelInUse                   Kind = "TunnelIdInUse"
	AvailabilityZoneNotFound      Kind = "AvailabilityZoneNotFound"
	NoNetworkAvailable            Kind = "NoNetworkAvailable"
	FlatInUse                     Kind = "FlatNetworkInUse"
	NetworkInUse                  Kind = "NetworkInUse"
	SubnetInUse                   Kind = "SubnetInUse"
	MTUTooSmall                   Kind = "NetworkMTUSubnetConflict"
	InvalidSharedSetting          Kind = "InvalidSharedSetting"
	PortBound                     Kind = "PortBound"
	DeviceNotOwned                Kind = "DeviceIDNotOwnedByTenant"
	NetworkHostedByDHCPAgent      Kind = "NetworkHostedByDHCPAgent"
	NetworkNotHostedByDHCPAgent   Kind = "NetworkNotHostedByDhcpAgent"
	InvalidDHCPAgent              Kind = "InvalidDHCPAgent"
	BindingExists                 Kind = "PortBindingAlreadyExists"
	BindingActive                 Kind = "PortBindingAlreadyActive"
	BindingNotFound               Kind = "PortBindingNotFound"
	BindingFailed                 Kind = "PortBindingError"
	RevisionMismatch              Kind = "RevisionNumberConstraintFailed"
	AddressPairWithoutIP          Kind = "AllowedAddressPairsMissingIP"
	AddressPairsExhausted         Kind = "AllowedAddressPairExhausted"
	AddressPairsNeedPortSecurity  Kind = "AddressPairAndPortSecurityRequired"
	DuplicateAddressPair          Kind = "DuplicateAddressPairInRequest"
	SegmentsAndProvider           Kind = "SegmentsSetInConjunctionWithProviders"
	TrunkNotFound                 Kind = "TrunkNotFound"
	SubportNotFound               Kind = "SubPortNotFound"
	TrunkDisabled                 Kind = "TrunkDisabled"
	TrunkErrored                  Kind = "TrunkInErrorState"
	TrunkInUse                    Kind = "TrunkInUse"
	ParentInUse                   Kind = "ParentPortInUse"
	PortInUse                     Kind = "PortInUse"
	TrunkPortInUse                Kind = "TrunkPortInUse"
	PortIsParent                  Kind = "PortInUseAsTrunkParent"
	PortIsSubport                 Kind = "PortInUseAsSubPort"
	DuplicateSubport              Kind = "DuplicateSubPort"
	SubportMTU                    Kind = "SubPortMtuGreaterThanTrunkPortMtu"
	GroupInUse                    Kind = "SecurityGroupInUse"
	GroupConflict                 Kind = "SecurityGroupConflict"
	CannotRemoveDefaultGroup      Kind = "SecurityGroupCannotRemoveDefault"
	CannotUpdateDefaultGroup      Kind = "SecurityGroupCannotUpdateDefault"
	DefaultExists                 Kind = "SecurityGroupDefaultAlreadyExists"
	GroupsNeedPortSecurity        Kind = "PortSecurityAndIPRequiredForSecurityGroups"
	PortHasGroups                 Kind = "PortSecurityPortHasSecurityGroup"
	RuleNotFound                  Kind = "SecurityGroupRuleNotFound"
	RuleExists                    Kind = "SecurityGroupRuleExists"
	RuleProtocol                  Kind = "SecurityGroupRuleInvalidProtocol"
	RuleNoEtherType               Kind = "SecurityGroupRuleInvalidEtherType"
	RuleCIDR                      Kind = "InvalidCIDR"
	RuleEtherType                 Kind = "SecurityGroupEthertypeConflictWithProtocol"
	RuleRemotes                   Kind = "SecurityGroupMultipleRemoteEntites"
	RuleConflict                  Kind = "SecurityGroupRuleParameterConflict"
	RuleNeedsProtocol             Kind = "SecurityGroupProtocolRequiredWithPorts"
	RuleNoPorts                   Kind = "SecurityGroupInvalidProtocolForPort"
	RulePorts                     Kind = "SecurityGroupInvalidPortRange"
	RulePort                      Kind = "SecurityGroupInvalidPortValue"
	RuleICMPType                  Kind = "SecurityGroupMissingIcmpType"
	RuleICMPValue                 Kind = "SecurityGroupInvalidIcmpValue"
	QuotaExceeded                 Kind = "OverQuota"
	QuotaNotFound                 Kind = "TenantQuotaNotFound"
	QuotaTooLow                   Kind = "HTTPBadRequest" // Neutron raises a plain HTTP 400 here
)

// Fault is the error for a request that is rejected. The message of a Fault is the text that the API client
// gets.
type Fault struct {
	Kind    Kind
	Message string
}

func (f *Fault) Error() string { return f.Message }

// Faultf returns a Fault with a formatted message.
func Faultf(kind Kind, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// NotFound returns the fault for a network, subnet, port or agent that does not exist.
func NotFound(kind Kind, what string, id fmt.Stringer) *Fault {
	return Faultf(kind, "%s %s could not be found.", what, id)
}
