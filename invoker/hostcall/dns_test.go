package hostcall

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// resolverAnswering returns a resolver whose only server is the test's own: every name
// has the one address that answer returns.
func resolverAnswering(t *testing.T, answer func(name string) netip.Addr) *net.Resolver {
	t.Helper()
	return resolverOf(t, func(q dnsmessage.Question) []dnsmessage.Resource {
		return addresses(q, answer(q.Name.String()))
	})
}

// resolverOf is a resolver whose only server answers as the test says.
func resolverOf(t *testing.T, answer func(dnsmessage.Question) []dnsmessage.Resource) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.ListenPacket: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := dnsReply(buf[:n], answer); reply != nil {
				_, _ = conn.WriteTo(reply, from) // the resolver asks again
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// addresses answers q with those of addrs that are of its type.
func addresses(q dnsmessage.Question, addrs ...netip.Addr) []dnsmessage.Resource {
	var out []dnsmessage.Resource
	for _, a := range addrs {
		head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			out = append(out, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			out = append(out, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return out
}

// alias answers q with a chain of names, the last of which has an address.
func alias(q dnsmessage.Question, addr netip.Addr, names ...string) []dnsmessage.Resource {
	var out []dnsmessage.Resource
	for _, name := range names {
		next := dnsmessage.MustNewName(name)
		out = append(out, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: dnsmessage.TypeCNAME, Class: q.Class},
			Body:   &dnsmessage.CNAMEResource{CNAME: next},
		})
		q.Name = next
	}
	return append(out, addresses(q, addr)...)
}

func dnsReply(query []byte, answer func(dnsmessage.Question) []dnsmessage.Resource) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(query)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	head.Response, head.Authoritative = true, true
	packed, err := (&dnsmessage.Message{Header: head, Questions: []dnsmessage.Question{q}, Answers: answer(q)}).Pack()
	if err != nil {
		return nil
	}
	return packed
}
