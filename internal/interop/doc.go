// Package interop tests berth with unmodified third-party programs: the openstack command line, openstacksdk, gophercloud, and Neutron's
// DHCP and Open vSwitch agents. The package also runs the commands in the documentation.
package interop
