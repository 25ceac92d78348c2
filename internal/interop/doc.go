// Package interop tests berth with unmodified third-party programs: the openstack command line, openstacksdk,
// gophercloud, and Neutron's DHCP and Open vSwitch agents. Package interop also runs the commands in berth's
// documentation.
package interop
