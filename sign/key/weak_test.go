package key_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"math/big"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/key"
)

// TestSmallOrderPoints refuses the eight points of small order of edwards25519, and every other way to write them, which is the list
// that libsodium and others refuse.
func TestSmallOrderPoints(t *testing.T) {
	for _, encoded := range []string{
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0000000000000000000000000000000000000000000000000000000000000080",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000080",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // y = p+3, not canonical
		"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"0200000000000000000000000000000000000000000000000000000000000000", // no point
	} {
		refused(t, encoded, ed25519.PublicKey(must(hex.DecodeString(encoded))))
	}
	for range 50 {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		if err == nil {
			_, err = key.ParsePublic(pemOf(public))
		}
		if err != nil {
			t.Errorf("a good key %x: %v", public, err)
		}
	}
}

func TestWeakModulus(t *testing.T) {
	good := rsaKey(t, 2048).PublicKey
	one := big.NewInt(1)
	power := new(big.Int).Lsh(one, 2047)
	root := withoutSmallFactors(new(big.Int).SetBit(new(big.Int).Lsh(big.NewInt(3), 1022), 0, 1))
	third := new(big.Int).Set(good.N)
	for new(big.Int).Mod(third, big.NewInt(3)).Sign() != 0 {
		third.Sub(third, big.NewInt(2))
	}
	for name, k := range map[string]*rsa.PublicKey{
		"e=1":            {N: good.N, E: 1},
		"e=2":            {N: good.N, E: 2},
		"e even":         {N: good.N, E: 65536},
		"even modulus":   {N: new(big.Int).Add(good.N, one), E: 65537},
		"power of two":   {N: power, E: 65537},
		"a square":       {N: new(big.Int).Mul(root, root), E: 65537},
		"a small factor": {N: third, E: 65537},
		"1024 bits":      {N: new(big.Int).Rsh(good.N, 1024), E: 65537},
	} {
		refused(t, name, k)
	}
	if _, err := key.ParsePublic(pemOf(&good)); err != nil {
		t.Error(err)
	}
}

// TestUnsupportedKinds: a correct key of another kind is refused as unsupported, and not as malformed.
func TestUnsupportedKinds(t *testing.T) {
	point := append([]byte{4}, make([]byte, 64)...)
	spki := func(algorithm asn1.ObjectIdentifier, parameters any, content []byte) []byte {
		a := pkix.AlgorithmIdentifier{Algorithm: algorithm}
		if parameters != nil {
			a.Parameters.FullBytes = must(asn1.Marshal(parameters))
		}
		return block("PUBLIC KEY", must(asn1.Marshal(struct {
			Algorithm pkix.AlgorithmIdentifier
			Key       asn1.BitString
		}{a, asn1.BitString{Bytes: content, BitLength: 8 * len(content)}})))
	}
	ec := asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}
	for name, test := range map[string]struct {
		data []byte
		code report.Code
		says string
	}{
		"secp256k1":         {spki(ec, asn1.ObjectIdentifier{1, 3, 132, 0, 10}, point), report.WeakKey, "secp256k1"},
		"brainpoolP256r1":   {spki(ec, asn1.ObjectIdentifier{1, 3, 36, 3, 3, 2, 8, 1, 1, 7}, point), report.WeakKey, "1.3.36.3.3.2.8.1.1.7"},
		"explicit curve":    {spki(ec, struct{ Version int }{1}, point), report.WeakKey, "a curve of its own"},
		"Ed448":             {spki(asn1.ObjectIdentifier{1, 3, 101, 113}, nil, make([]byte, 57)), report.WeakKey, "1.3.101.113"},
		"X25519":            {spki(asn1.ObjectIdentifier{1, 3, 101, 110}, nil, make([]byte, 32)), report.WeakKey, "ecdh"},
		"P-224":             {pemOf(&ecKey(t, elliptic.P224()).PublicKey), report.WeakKey, "p224"},
		"P-256, no point":   {spki(ec, asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 7}, point), report.Invalid, ""},
		"Ed25519, 31 bytes": {spki(asn1.ObjectIdentifier{1, 3, 101, 112}, nil, make([]byte, 31)), report.Invalid, ""},
		"no key":            {block("PUBLIC KEY", []byte("x")), report.Invalid, ""},
	} {
		if _, err := key.ParsePublic(test.data); report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want code %s", name, err, test.code)
		}
	}

	sec1 := must(asn1.Marshal(struct {
		Version int
		Key     []byte
		Curve   asn1.ObjectIdentifier `asn1:"optional,explicit,tag:0"`
	}{1, make([]byte, 32), asn1.ObjectIdentifier{1, 3, 132, 0, 10}}))
	pkcs8 := must(asn1.Marshal(struct {
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       []byte
	}{0, pkix.AlgorithmIdentifier{Algorithm: ec, Parameters: asn1.RawValue{FullBytes: must(asn1.Marshal(asn1.ObjectIdentifier{1, 3, 132, 0, 10}))}}, sec1}))
	for name, data := range map[string][]byte{
		"PKCS#8": block("PRIVATE KEY", pkcs8), "SEC 1": block("EC PRIVATE KEY", sec1),
		"P-224": block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(ecKey(t, elliptic.P224())))),
	} {
		if _, err := key.Load(data, password); report.CodeOf(err) != report.WeakKey {
			t.Errorf("private key, %s: %v", name, err)
		}
	}
}

func TestCheckAuthority(t *testing.T) {
	if err := key.CheckAuthority(&ecKey(t, elliptic.P384()).PublicKey); err != nil {
		t.Error(err)
	}
	even := new(big.Int).Lsh(big.NewInt(1), 5000)
	for name, k := range map[string]crypto.PublicKey{
		"a long even modulus": &rsa.PublicKey{N: even, E: 65537}, "RSA of 1024 bits": &rsaKey(t, 1024).PublicKey, "P-224": &ecKey(t, elliptic.P224()).PublicKey,
		"none": nil, "a point of small order": ed25519.PublicKey(make([]byte, 32)),
	} {
		if err := key.CheckAuthority(k); report.CodeOf(err) != report.WeakKey {
			t.Errorf("%s: %v", name, err)
		}
	}
	odd := withoutSmallFactors(new(big.Int).Add(even, big.NewInt(1)))
	if err := key.CheckAuthority(&rsa.PublicKey{N: odd, E: 65537}); err != nil {
		t.Errorf("a key that is longer than those of signers: %v", err)
	}
}

// withoutSmallFactors returns the next number that no small one divides.
func withoutSmallFactors(odd *big.Int) *big.Int {
	small, one := new(big.Int).MulRange(1, 1100), big.NewInt(1)
	for new(big.Int).GCD(nil, nil, odd, small).Cmp(one) != 0 {
		odd.Add(odd, big.NewInt(2))
	}
	return odd
}

// refused tests that a key is refused in a file and as it is.
func refused(t *testing.T, name string, k crypto.PublicKey) {
	t.Helper()
	if _, err := key.NewPublic(k); report.CodeOf(err) != report.WeakKey {
		t.Errorf("%s: %v, want code weak-key", name, err)
	}
	if _, err := key.ParsePublic(pemOf(k)); report.CodeOf(err) != report.WeakKey {
		t.Errorf("%s, in a file: %v, want code weak-key", name, err)
	}
}

func pemOf(k crypto.PublicKey) []byte {
	return block("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(k)))
}
