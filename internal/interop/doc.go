// Package interop tests berth with programs that others wrote, unmodified: the openstack command line, openstacksdk, gophercloud, and
// Neutron's DHCP and Open vSwitch agents. It also runs the commands of the documents.
package interop
