"""Requests an address by DHCP on a network device, as a booting server does, and prints the address that the DHCP server offers."""

import os
import socket
import struct
import sys
import time

device, mac = sys.argv[1], bytes.fromhex(sys.argv[2].replace(":", ""))
transaction = os.urandom(4)
BROADCAST, DISCOVER = 0x8000, b"\x35\x01\x01"
ask = struct.pack("!4B4s2H16x6s10x192x4B", 1, 1, 6, 0, transaction, 0, BROADCAST, mac, 99, 130, 83, 99) + DISCOVER + b"\xff"

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
s.bind(("", 68))
s.settimeout(1)
until = time.monotonic() + 60
while time.monotonic() < until:
    s.sendto(ask.ljust(300, b"\0"), ("255.255.255.255", 67))
    try:
        answer = s.recv(4096)
    except TimeoutError:
        continue
    if answer[4:8] == transaction:
        print(socket.inet_ntoa(answer[16:20]))
        sys.exit()
sys.exit("nobody offers an address")
