// Package interop tests berth with unmodified third-party programs: the openstack command line, openstacksdk, gophercloud, and Neutron's
// DHCP and Open vSwitch agents. It also runs the commands in the documentation.
package interop
