package oslomsg

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
)

// Types of AMQP frames, and the sizes in bytes of their parts.
const (
	frameMethod = 1
	frameHeader = 2
	frameBody   = 3

	frameStart     = 7  // type, channel and size
	propertiesAt   = 14 // in a header frame: class, weight, size of the body and flags
	maxFrame       = 1 << 20
	deliveryMethod = 60<<16 | 60 // basic.deliver
)

// Flags of the first properties of a message, which are in this order in a header frame.
const (
	flagContentType     = 1 << 15
	flagContentEncoding = 1 << 14
	flagHeaders         = 1 << 13
)

// traceparentHeader is the only header of a delivered message that berth reads.
const traceparentHeader = "traceparent"

// guardedConn is a connection to RabbitMQ that protects the amqp library from the messages of agents. The
// library keeps a body of any size in memory before berth sees it, and ends the connection at headers that
// RabbitMQ accepts, for example deeply nested ones; RabbitMQ would deliver such a message again for ever.
//
// A guardedConn cuts the body of a delivered message, so that decodeRequest still refuses the message as too
// large, and removes all headers but traceparentHeader. The connection may have only one channel with
// deliveries.
type guardedConn struct {
	net.Conn
	in       *bufio.Reader
	frame    []byte // the current frame as RabbitMQ has sent it
	checked  []byte // of the current frame, which Read has not returned yet
	delivery bool   // the current message is a delivery, not a returned message
	left     uint64 // bytes that the body of the current delivery may still have
}

func newGuardedConn(c net.Conn) *guardedConn { return &guardedConn{Conn: c, in: bufio.NewReader(c)} }

func (c *guardedConn) Read(p []byte) (int, error) {
	for len(c.checked) == 0 {
		if err := c.readFrame(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.checked)
	c.checked = c.checked[n:]
	return n, nil
}

// readFrame reads and checks the next frame. A frame that is left out leaves c.checked empty.
func (c *guardedConn) readFrame() error {
	c.frame = slices.Grow(c.frame[:0], frameStart)[:frameStart]
	if _, err := io.ReadFull(c.in, c.frame); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(c.frame[3:])
	if size > maxFrame {
		return fmt.Errorf("AMQP frame of %d bytes, more than the maximum of %d", size, maxFrame)
	}
	c.frame = slices.Grow(c.frame, int(size)+1)[:frameStart+size+1]
	if _, err := io.ReadFull(c.in, c.frame[frameStart:]); err != nil {
		return err
	}
	payload := c.frame[frameStart : frameStart+size]
	switch kind := c.frame[0]; {
	case kind == frameMethod:
		c.delivery = size >= 4 && binary.BigEndian.Uint32(payload) == deliveryMethod
	case kind == frameHeader && c.delivery && size >= propertiesAt:
		c.replacePayload(c.checkHeader(payload))
		return nil
	case kind == frameBody && c.delivery:
		kept := min(uint64(size), c.left)
		c.left -= kept
		if kept == 0 {
			return nil
		}
		if kept < uint64(size) {
			c.replacePayload(payload[:kept])
			return nil
		}
	}
	c.checked = c.frame
	return nil
}

// replacePayload lets Read return the current frame with another payload.
func (c *guardedConn) replacePayload(payload []byte) {
	start, end := c.frame[:frameStart], c.frame[len(c.frame)-1:]
	binary.BigEndian.PutUint32(start[3:], uint32(len(payload)))
	c.checked = bytes.Join([][]byte{start, payload, end}, nil)
}

// checkHeader limits the size of the body in a header frame, and replaces the headers.
func (c *guardedConn) checkHeader(payload []byte) []byte {
	c.left = min(binary.BigEndian.Uint64(payload[4:]), maxBody+1)
	binary.BigEndian.PutUint64(payload[4:], c.left)
	flags := binary.BigEndian.Uint16(payload[propertiesAt-2:])
	if flags&flagHeaders == 0 {
		return payload
	}
	rest, ok := payload[propertiesAt:], true
	for _, flag := range []uint16{flagContentType, flagContentEncoding} {
		if ok && flags&flag != 0 {
			_, rest, ok = cutText(rest, 1)
		}
	}
	before := payload[:len(payload)-len(rest)]
	var table []byte
	if ok {
		table, rest, ok = cutText(rest, 4)
	}
	if !ok {
		return payload // not from RabbitMQ, which has read the properties
	}
	return bytes.Join([][]byte{before, traceparentTable(table), rest}, nil)
}

// traceparentTable returns a table of headers with only the traceparentHeader of the given table, if it has
// this header.
func traceparentTable(table []byte) []byte {
	value := findText(table, traceparentHeader)
	if len(value) == 0 || len(value) > MaxName {
		return make([]byte, 4)
	}
	entry := append([]byte{byte(len(traceparentHeader))}, traceparentHeader+"S"...)
	entry = append(binary.BigEndian.AppendUint32(entry, uint32(len(value))), value...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(entry))), entry...)
}

// fieldSizes are the sizes of the values in a table by their type, except for those that begin with a size.
var fieldSizes = map[byte]int{'t': 1, 'b': 1, 'B': 1, 's': 2, 'u': 2, 'I': 4, 'i': 4, 'f': 4, 'l': 8, 'L': 8,
	'd': 8, 'T': 8, 'D': 5, 'V': 0}

// findText returns the text with the given name in a table. findText does not descend into nested tables.
func findText(table []byte, name string) []byte {
	for {
		key, rest, ok := cutText(table, 1)
		if !ok || len(rest) == 0 {
			return nil
		}
		kind, value := rest[0], rest[1:]
		switch size, fixed := fieldSizes[kind]; {
		case fixed && size <= len(value):
			value, table = value[:size], value[size:]
		case fixed:
			return nil
		default: // a text, bytes, a table or an array; an unknown type ends the search or hides later headers
			if value, table, ok = cutText(value, 4); !ok {
				return nil
			}
		}
		if kind == 'S' && string(key) == name {
			return value
		}
	}
}

// cutText returns the text at the beginning of b, which has its size in the given number of bytes (1 or 4)
// before it, and the rest of b. cutText returns b if b is too short.
func cutText(b []byte, sizeBytes int) (text, rest []byte, ok bool) {
	if len(b) < sizeBytes {
		return nil, b, false
	}
	size := uint64(b[0])
	if sizeBytes == 4 {
		size = uint64(binary.BigEndian.Uint32(b))
	}
	if after := b[sizeBytes:]; size <= uint64(len(after)) {
		return after[:size], after[size:], true
	}
	return nil, b, false
}
