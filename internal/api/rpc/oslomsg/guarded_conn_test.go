package oslomsg

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
)

// answerConn is a connection on which RabbitMQ has sent fixed bytes.
type answerConn struct {
	net.Conn
	io.Reader
}

func (c answerConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

func frame(kind byte, payload ...[]byte) []byte {
	content := bytes.Join(payload, nil)
	start := binary.BigEndian.AppendUint32([]byte{kind, 0, 1}, uint32(len(content)))
	return append(append(start, content...), 0xce)
}

// sentMessage returns the frames of a message: basic.deliver or, if returned is true, basic.return.
func sentMessage(returned bool, size int, headers []byte) []byte {
	method := []byte{0, 60, 0, 60}
	if returned {
		method = []byte{0, 60, 0, 50}
	}
	properties := []byte{flagContentType>>8 | flagHeaders>>8, 0, 1, 'j'}
	properties = binary.BigEndian.AppendUint32(properties, uint32(len(headers)))
	wire := append(frame(frameMethod, method), frame(frameHeader, []byte{0, 60, 0, 0},
		binary.BigEndian.AppendUint64(nil, uint64(size)), properties, headers)...)
	const part = 100_000
	for ; size > 0; size -= part {
		wire = append(wire, frame(frameBody, bytes.Repeat([]byte("a"), min(size, part)))...)
	}
	return wire
}

func readGuarded(t *testing.T, wire []byte) []byte {
	t.Helper()
	got, err := io.ReadAll(newGuardedConn(answerConn{Reader: bytes.NewReader(wire)}))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The body of the first message is cut to maxBody+1 bytes. The second message is a reply of berth that
// RabbitMQ returned.
func TestGuardedConn_LimitsTheBodiesOfDeliveriesOnly(t *testing.T) {
	t.Parallel()
	delivered, returned := sentMessage(false, 16*maxBody, nil), sentMessage(true, 2*maxBody, nil)
	next := sentMessage(false, 5, nil)

	got := readGuarded(t, bytes.Join([][]byte{delivered, returned, next}, nil))

	if want := append(bytes.Clone(returned), next...); !bytes.HasSuffix(got, want) {
		t.Error("read a returned message and a small delivery: want them unchanged")
	}
	cut := got[:len(got)-len(returned)-len(next)]
	if n := bytes.Count(cut, []byte("a")); n != maxBody+1 {
		t.Errorf("read a delivery of %d bytes: got %d bytes, want %d", 16*maxBody, n, maxBody+1)
	}
	announced := frame(frameHeader, []byte{0, 60, 0, 0}, binary.BigEndian.AppendUint64(nil, maxBody+1))[frameStart:]
	if !bytes.Contains(cut, announced[:12]) {
		t.Errorf("read a delivery that was cut: its header does not announce %d bytes", maxBody+1)
	}
}

func TestGuardedConn_KeepsOnlyTheHeaderTraceparent(t *testing.T) {
	t.Parallel()
	text := func(name, value string) string {
		return string(rune(len(name))) + name + "S" + string([]byte{0, 0, 0, byte(len(value))}) + value
	}
	nested := ""
	for range 40 {
		nested = "\x01xF" + string(binary.BigEndian.AppendUint32(nil, uint32(len(nested)))) + nested
	}
	traceparent := text("traceparent", "00-ab-cd-01")
	for name, c := range map[string]struct{ headers, want string }{
		"none":               {"", ""},
		"only":               {traceparent, traceparent},
		"after each type":    {"\x01at\x01" + "\x01bI1234" + "\x01cl12345678" + "\x01dV" + "\x01eA\x00\x00\x00\x01V" + traceparent, traceparent},
		"after nested":       {nested + traceparent, traceparent},
		"inside of a table":  {"\x01xF\x00\x00\x00" + string(rune(len(traceparent))) + traceparent, ""},
		"many":               {strings.Repeat("\x01aV", 9000) + traceparent, traceparent},
		"as a number":        {"\x0btraceparentI1234", ""},
		"ends in a name":     {"\x0btrace", ""},
		"ends in a value":    {"\x01aS\x00\x00\x00\x09x", ""},
		"of an unknown type": {"\x01a?", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := readGuarded(t, sentMessage(false, 5, []byte(c.headers)))
			if want := sentMessage(false, 5, []byte(c.want)); !bytes.Equal(got, want) {
				t.Errorf("read a delivery:\ngot  %q\nwant %q", got, want)
			}
		})
	}
}
