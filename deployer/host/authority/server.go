package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Server returns the configuration of a listener. Its certificate is for the given names and addresses, for every address
// of the host, and for localhost. An address that the host gets later, such as a virtual one that moves between hosts, is
// added when the first client comes to it.
func (a *Authority) Server(names ...string) *tls.Config {
	s := &server{authority: a, names: names}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: s.get}
}

// server has the certificate of one listener.
type server struct {
	authority *Authority
	names     []string

	mu      sync.Mutex
	current *tls.Certificate
}

func (s *server) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	local := localAddress(hello.Conn)
	if c := s.current; c != nil && isFresh(c.Leaf, s.authority.now(), 3) && (!local.IsValid() || c.Leaf.VerifyHostname(local.String()) == nil) {
		return c, nil
	}
	made, err := s.authority.issue(s.names, local)
	if err != nil {
		return nil, err
	}
	s.current = made
	return made, nil
}

// localAddress is the address that a client has connected to.
func localAddress(conn net.Conn) netip.Addr {
	if conn == nil {
		return netip.Addr{}
	}
	address, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return address.Addr().Unmap().WithZone("")
}

// issue makes a certificate for a listener.
func (a *Authority) issue(names []string, local netip.Addr) (*tls.Certificate, error) {
	if err := a.renew(); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := a.template("solutionctl registry", serverLife)
	if err != nil {
		return nil, err
	}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost"}
	addresses := append(hostAddresses(), local)
	for _, name := range names {
		if address, notOne := netip.ParseAddr(name); notOne == nil {
			addresses = append(addresses, address)
		} else if !slices.Contains(template.DNSNames, name) {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	for _, address := range slices.Compact(addresses) {
		if address.IsValid() && !address.IsUnspecified() {
			template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
		}
	}
	a.mu.Lock()
	authority := a.certificate
	a.mu.Unlock()
	der, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// hostAddresses returns the addresses of the host's interfaces; none if the system does not list them.
func hostAddresses() []netip.Addr {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var addresses []netip.Addr
	for _, address := range found {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			addresses = append(addresses, prefix.Addr().Unmap().WithZone(""))
		}
	}
	return addresses
}
