"""Stands in for a network card with one virtual function, which the SR-IOV agent manages.

The agent reads the card from the kernel in two ways: from files below /sys/class/net, and from the virtual functions that `ip link show`
prints. Here the files are in the folder sys of the home folder, and the virtual functions in its file virtual_functions.json.
"""
import json
import os

from neutron.agent.linux import ip_lib
from neutron.plugins.ml2.drivers.mech_sriov.agent import eswitch_manager

HOME = os.environ["HOME"]
FUNCTIONS = os.path.join(HOME, "virtual_functions.json")


def read_functions(_link):
    with open(FUNCTIONS) as f:
        return {int(index): function for index, function in json.load(f).items()}


def change_function(link, change):
    functions = read_functions(link)
    functions[change["vf"]].update(change)
    with open(FUNCTIONS + ".new", "w") as f:
        json.dump(functions, f)
    os.rename(FUNCTIONS + ".new", FUNCTIONS)


eswitch_manager.PciOsWrapper.DEVICE_PATH = HOME + "/sys/%s/device"
eswitch_manager.PciOsWrapper.PCI_PATH = HOME + "/sys/%s/device/virtfn%s.net"
eswitch_manager.PciOsWrapper.NUMVFS_PATH = HOME + "/sys/%s/device/sriov_numvfs"
ip_lib.IpLinkCommand.get_vfs = read_functions
ip_lib.IpLinkCommand.set_vf_feature = change_function
