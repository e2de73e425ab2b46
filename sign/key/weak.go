package key

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// weakness explains why a key of a supported kind and length is worthless: its signatures can be made without a private
// key, or different programs judge them differently. It is nil for a key that can have a private key.
func weakness(k crypto.PublicKey) error {
	switch k := k.(type) {
	case ed25519.PublicKey:
		return weakPoint(k)
	case *rsa.PublicKey:
		return weakModulus(k)
	}
	return nil
}

// The field of edwards25519 and its constant d.
var (
	fieldOrder = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	edwardsD   = hexadecimal("52036cee2b6ffe738cc740797779e89800700a4d4141d8ab75eb4dca135978a3")
)

// smallOrder are the y coordinates of the eight points whose order divides the cofactor 8. A signature of such a key can be written
// down without knowing anything, and is one of all messages or of one in a few.
var smallOrder = []*big.Int{
	big.NewInt(0), // order 4
	big.NewInt(1), // order 1
	new(big.Int).Sub(fieldOrder, big.NewInt(1)),                                     // order 2
	hexadecimal("05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826"), // order 8
	hexadecimal("7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7"), // order 8
}

func hexadecimal(digits string) *big.Int {
	n, ok := new(big.Int).SetString(digits, 16)
	if !ok {
		panic("not a number: " + digits)
	}
	return n
}

func weakPoint(k ed25519.PublicKey) error {
	if len(k) != ed25519.PublicKeySize {
		return fmt.Errorf("%d bytes, want %d", len(k), ed25519.PublicKeySize)
	}
	encoded := slices.Clone(k)
	slices.Reverse(encoded) // it is little-endian
	encoded[0] &^= 0x80     // the sign of x
	y := new(big.Int).SetBytes(encoded)
	if y.Cmp(fieldOrder) >= 0 {
		return errors.New("its point is not encoded canonically")
	}
	for _, small := range smallOrder {
		if y.Cmp(small) == 0 {
			return errors.New("its point has a small order, so that everyone can sign")
		}
	}
	// x² = (y²-1)/(dy²+1) has to have a root, as the product of both has then.
	square := new(big.Int).Mul(y, y)
	u := new(big.Int).Sub(square, big.NewInt(1))
	v := new(big.Int).Add(new(big.Int).Mul(edwardsD, square), big.NewInt(1))
	if big.Jacobi(u.Mul(u, v).Mod(u, fieldOrder), fieldOrder) < 0 {
		return errors.New("it is not a point of the curve")
	}
	return nil
}

// maxSmallFactor bounds the factors that a modulus is tried for. No key that was generated has one.
const maxSmallFactor = 1 << 10

func weakModulus(k *rsa.PublicKey) error {
	if k.E < 3 || k.E%2 == 0 {
		return fmt.Errorf("its exponent is %d, want an odd one of 3 or more", k.E)
	}
	rest := new(big.Int)
	for factor := int64(2); factor < maxSmallFactor; factor++ {
		if rest.Mod(k.N, big.NewInt(factor)).Sign() == 0 {
			return fmt.Errorf("its modulus can be divided by %d", factor)
		}
	}
	if root := rest.Sqrt(k.N); new(big.Int).Mul(root, root).Cmp(k.N) == 0 {
		return errors.New("its modulus is a square")
	}
	return nil
}

// unsupported names what kind of key it is that the standard library does not know, in a form that is correct otherwise; "" where it
// is not a key at all.
func unsupported(a pkix.AlgorithmIdentifier) string {
	var curve asn1.ObjectIdentifier
	if _, err := asn1.Unmarshal(a.Parameters.FullBytes, &curve); err != nil {
		curve = nil
	}
	switch {
	case len(a.Algorithm) == 0:
		return ""
	case !a.Algorithm.Equal(oidEC):
		if slices.ContainsFunc(supported, a.Algorithm.Equal) {
			return "" // so its parameters or its content are wrong
		}
		return "of algorithm " + a.Algorithm.String()
	case curve == nil:
		return "on a curve of its own"
	case curve.Equal(oidSecp256k1):
		return "on curve secp256k1"
	case slices.ContainsFunc(supportedCurves, curve.Equal):
		return ""
	default:
		return "on curve " + curve.String()
	}
}

var (
	oidEC        = asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}
	oidSecp256k1 = asn1.ObjectIdentifier{1, 3, 132, 0, 10}

	// supported are RSA and Ed25519, and supportedCurves those that are parsed: P-224, which is refused later, P-256, P-384 and P-521.
	supported       = []asn1.ObjectIdentifier{{1, 2, 840, 113549, 1, 1, 1}, {1, 3, 101, 112}}
	supportedCurves = []asn1.ObjectIdentifier{{1, 3, 132, 0, 33}, {1, 2, 840, 10045, 3, 1, 7}, {1, 3, 132, 0, 34}, {1, 3, 132, 0, 35}}
)

// unsupportedPublic is [unsupported] of the DER form of a public key.
func unsupportedPublic(der []byte) string {
	var info struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}
	if rest, err := asn1.Unmarshal(der, &info); err != nil || len(rest) > 0 {
		return ""
	}
	return unsupported(info.Algorithm)
}

// unsupportedPrivate is [unsupported] of the PKCS#8 or SEC 1 form of a private key.
func unsupportedPrivate(der []byte) string {
	var info struct {
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       []byte
		Rest      asn1.RawValue `asn1:"optional"`
	}
	if _, err := asn1.Unmarshal(der, &info); err == nil {
		return unsupported(info.Algorithm)
	}
	var ec struct {
		Version int
		Key     []byte
		Curve   asn1.ObjectIdentifier `asn1:"optional,explicit,tag:0"`
		Public  asn1.BitString        `asn1:"optional,explicit,tag:1"`
	}
	if _, err := asn1.Unmarshal(der, &ec); err != nil || ec.Curve == nil {
		return ""
	}
	parameters, err := asn1.Marshal(ec.Curve)
	if err != nil {
		return ""
	}
	return unsupported(pkix.AlgorithmIdentifier{Algorithm: oidEC, Parameters: asn1.RawValue{FullBytes: parameters}})
}
