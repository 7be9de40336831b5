package ramp_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	ethcrypto "github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

func vectorECDSA(t testing.TB) *ecdsa.PrivateKey {
	return must.Get(ethcrypto.HexToECDSA(vectorKey[2:]))(t)
}

// otherCurve is secp256k1 in another implementation: a different type with the same
// parameters.
type otherCurve struct{ elliptic.Curve }

// order is the order of secp256k1.
var order = ethcrypto.S256().Params().N

// The forms in which key services return a signature.
type form func(r, s *big.Int) ([]byte, error)

func asDER(r, s *big.Int) ([]byte, error) { return asn1.Marshal(struct{ R, S *big.Int }{r, s}) }

func asRS(r, s *big.Int) ([]byte, error) { return bytesOf(r, s), nil }

func asRSV(r, s *big.Int) ([]byte, error) { return append(bytesOf(r, s), 0x77), nil }

func bytesOf(r, s *big.Int) []byte {
	return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
}

// asShort is r||s of a service that omits leading zeros.
func asShort(r, s *big.Int) ([]byte, error) { return append(r.Bytes(), s.Bytes()...), nil }

// withoutSigns is DER of a service that omits the zero before a number whose first bit is set.
func withoutSigns(r, s *big.Int) ([]byte, error) {
	number := func(n *big.Int) asn1.RawValue { return asn1.RawValue{Tag: asn1.TagInteger, Bytes: n.Bytes()} }
	return asn1.Marshal(struct{ R, S asn1.RawValue }{number(r), number(s)})
}

// withZeros is DER of a service that writes every number in 33 bytes.
func withZeros(r, s *big.Int) ([]byte, error) {
	number := func(n *big.Int) asn1.RawValue {
		return asn1.RawValue{Tag: asn1.TagInteger, Bytes: n.FillBytes(make([]byte, 33))}
	}
	return asn1.Marshal(struct{ R, S asn1.RawValue }{number(r), number(s)})
}

func highS(next form) form {
	return func(r, s *big.Int) ([]byte, error) { return next(r, new(big.Int).Sub(order, s)) }
}

var forms = map[string]form{
	"DER":                          asDER,
	"DER with a high s":            highS(asDER),
	"DER without sign bytes":       withoutSigns,
	"DER without a high s's sign":  highS(withoutSigns),
	"DER with numbers of 33 bytes": withZeros,
	"r||s":                         asRS,
	"r||s with a high s":           highS(asRS),
	"r||s without leading zeros":   asShort,
	"r||s||v of any v":             asRSV,
	"r||s||v with high s":          highS(asRSV),
}

// rawSign signs as a key service does: with the key, in a form.
func rawSign(key *ecdsa.PrivateKey, digest []byte, as form) ([]byte, error) {
	z := new(big.Int).SetBytes(digest)
	sig, err := ethcrypto.Sign(z.Mod(z, order).FillBytes(make([]byte, 32)), key) // as RFC 6979 has it
	if err != nil {
		return nil, err
	}
	return as(new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:64]))
}

// keyService is a crypto.Signer that does not expose its key.
type keyService struct {
	key    *ecdsa.PrivateKey
	as     form
	public crypto.PublicKey // instead of the key's own
	see    func(random io.Reader, digest []byte, options crypto.SignerOpts)
}

func (k *keyService) Public() crypto.PublicKey {
	if k.public != nil {
		return k.public
	}
	return &k.key.PublicKey
}

func (k *keyService) Sign(random io.Reader, digest []byte, options crypto.SignerOpts) ([]byte, error) {
	if k.see != nil {
		k.see(random, digest, options)
	}
	return rawSign(k.key, digest, k.as)
}

func keyFunc(key *ecdsa.PrivateKey, as form) func(context.Context, []byte) ([]byte, error) {
	return func(_ context.Context, digest []byte) ([]byte, error) { return rawSign(key, digest, as) }
}

// signers returns signers of the key from every constructor.
func signers(t testing.TB, key *ecdsa.PrivateKey) map[string]*ramp.Signer {
	t.Helper()
	all := map[string]*ramp.Signer{}
	add := func(name string, s *ramp.Signer, err error) {
		require.NoError(t, err, name)
		all[name] = s
	}
	address := ethcrypto.PubkeyToAddress(key.PublicKey)
	text := hex.EncodeToString(ethcrypto.FromECDSA(key))
	s, err := ramp.NewKeySigner("0x" + text)
	add("NewKeySigner", s, err)
	s, err = ramp.NewKeySigner(text)
	add("NewKeySigner without 0x", s, err)
	s, err = ramp.NewKeySigner("0x" + strings.ToUpper(text))
	add("NewKeySigner in capitals", s, err)
	s, err = ramp.NewCryptoSigner(key)
	add("NewCryptoSigner of a private key", s, err)
	foreign := *key
	foreign.Curve = otherCurve{key.Curve}
	s, err = ramp.NewCryptoSigner(&foreign)
	add("NewCryptoSigner of a private key of another implementation", s, err)
	s, err = ramp.NewCryptoSigner(&keyService{key: key, as: asDER, public: &foreign.PublicKey})
	add("NewCryptoSigner of another implementation", s, err)
	for name, as := range forms {
		s, err = ramp.NewCryptoSigner(&keyService{key: key, as: as})
		add("NewCryptoSigner, "+name, s, err)
		s, err = ramp.NewFuncSigner(address, keyFunc(key, as))
		add("NewFuncSigner, "+name, s, err)
	}
	return all
}

func TestSigningVectorsByEveryConstructor(t *testing.T) {
	for name, signer := range signers(t, vectorECDSA(t)) {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, vectorAddress, signer.Address())
			var group sync.WaitGroup // of concurrent users
			for range 4 {
				group.Go(func() {
					for _, v := range vectors {
						got, err := signer.Sign(context.Background(), v.digest(t))
						assert.NoError(t, err)
						assert.Equal(t, v.signatureText, got.String(), v.name)
					}
				})
			}
			group.Wait()
		})
	}
}

// For any key and digest, the signature recovers to the address, verifies, and has
// the form that contracts require.
func TestTenThousandKeysRecover(t *testing.T) {
	random := mathrand.NewChaCha8([32]byte([]byte("ten thousand keys and digests...")))
	half := new(big.Int).Rsh(order, 1)
	all := []form{asDER, highS(asDER), asRS, highS(asRS), asRSV, highS(asShort), highS(withoutSigns)}
	ctx := context.Background()
	keys := 10_000
	if testing.Short() {
		keys = 1_000
	}
	for n := range keys {
		var secret [32]byte
		var digest ramp.Digest
		_, _ = random.Read(secret[:])
		_, _ = random.Read(digest[:])
		key, err := ethcrypto.ToECDSA(secret[:])
		require.NoError(t, err)

		var signer *ramp.Signer
		switch n % 4 {
		case 0:
			signer, err = ramp.NewKeySigner(hex.EncodeToString(secret[:]))
		case 1:
			signer, err = ramp.NewCryptoSigner(key)
		case 2:
			signer, err = ramp.NewCryptoSigner(&keyService{key: key, as: all[n%len(all)]})
		case 3:
			signer, err = ramp.NewFuncSigner(ethcrypto.PubkeyToAddress(key.PublicKey), keyFunc(key, all[n%len(all)]))
		}
		require.NoError(t, err)
		sig := must.Get(signer.Sign(ctx, digest))(t)

		by := must.Get(ramp.Recover(digest, sig))(t)
		if by != signer.Address() || by != ethcrypto.PubkeyToAddress(key.PublicKey) {
			t.Fatalf("run %d: %s signed, %s recovers", n, signer.Address(), by)
		}
		if !ethcrypto.VerifySignature(ethcrypto.FromECDSAPub(&key.PublicKey), digest[:], sig[:64]) ||
			new(big.Int).SetBytes(sig[32:64]).Cmp(half) > 0 || sig[64] != 27 && sig[64] != 28 {
			t.Fatalf("run %d: %s is not what a contract accepts", n, sig)
		}
		digest[n%32] ^= 1
		if by, err := ramp.Recover(digest, sig); err == nil && by == signer.Address() {
			t.Fatalf("run %d: the signature holds for another digest", n)
		}
	}
}

// Of the signatures of a service that omits leading zeros, or sign bytes of DER, some have
// another length than those of other services. None of them is lost.
func TestThreeThousandSignaturesOfCarelessServices(t *testing.T) {
	for name, tt := range map[string]struct {
		as, right form
		odd       int // signatures that have another form
	}{
		"r||s without leading zeros": {asShort, asRS, 20},
		"DER without sign bytes":     {withoutSigns, asDER, 1400},
	} {
		t.Run(name, func(t *testing.T) {
			key, odd := vectorECDSA(t), 0
			var want []byte
			signer := must.Get(ramp.NewFuncSigner(vectorAddress, func(_ context.Context, d []byte) ([]byte, error) {
				return rawSign(key, d, func(r, s *big.Int) ([]byte, error) {
					want = bytesOf(r, s)
					right, err := tt.right(r, s)
					if err != nil {
						return nil, err
					}
					got, err := tt.as(r, s)
					if !bytes.Equal(got, right) {
						odd++
					}
					return got, err
				})
			}))(t)
			random := mathrand.NewChaCha8([32]byte([]byte("three thousand digests to sign..")))
			for range 3_000 {
				var digest ramp.Digest
				_, _ = random.Read(digest[:])
				got, err := signer.Sign(t.Context(), digest)
				require.NoError(t, err)
				require.Equal(t, want, got[:64])
			}
			assert.Greater(t, odd, tt.odd, "too few to test anything")
			t.Logf("%d of 3,000 have another form, and all are read", odd)
		})
	}
}

// A split of r||s without leading zeros is right only if it recovers to the address.
func TestShortSignaturesAreReadBySplit(t *testing.T) {
	key := vectorECDSA(t)
	// Found by trying the numbers from 0; a signature over the same digest is always the same.
	for n, lengths := range map[int64][2]int{68: {32, 31}, 349: {31, 32}, 1375: {32, 30}, 68381: {31, 31}} {
		digest := ramp.Digest(ethcrypto.Keccak256(big.NewInt(n).Bytes()))
		raw := must.Get(rawSign(key, digest[:], asRS))(t)
		r, s := bytes.TrimLeft(raw[:32], "\x00"), bytes.TrimLeft(raw[32:], "\x00")
		require.Equal(t, lengths, [2]int{len(r), len(s)}, "of r and s")
		short := append(bytes.Clone(r), s...)
		signer := must.Get(ramp.NewFuncSigner(vectorAddress,
			func(context.Context, []byte) ([]byte, error) { return short, nil }))(t)
		got, err := signer.Sign(t.Context(), digest)
		require.NoError(t, err)
		assert.Equal(t, raw, got[:64], "%v", lengths)
		digest[0] ^= 1
		_, err = signer.Sign(t.Context(), digest)
		assert.ErrorContains(t, err, fmt.Sprintf("its %d bytes are not of this digest", len(short)))
	}
}

func TestAServiceThatHashesTheDigestAgainIsNamed(t *testing.T) {
	digest := vectors[0].digest(t)
	message := []byte("\x19Ethereum Signed Message:\n32")
	for hash, again := range map[string]func(d []byte) []byte{
		"SHA-256":                           func(d []byte) []byte { h := sha256.Sum256(d); return h[:] },
		"Keccak-256":                        func(d []byte) []byte { return ethcrypto.Keccak256(d) },
		"the prefix of an Ethereum message": func(d []byte) []byte { return ethcrypto.Keccak256(message, d) },
	} {
		for name, as := range forms {
			t.Run(hash+", "+name, func(t *testing.T) {
				signer := must.Get(ramp.NewFuncSigner(vectorAddress,
					func(_ context.Context, d []byte) ([]byte, error) {
						return rawSign(vectorECDSA(t), again(d), as)
					}))(t)
				sig, err := signer.Sign(t.Context(), digest)
				require.ErrorIs(t, err, ramp.ErrSignature)
				require.EqualError(t, err, "ramp: signature is not valid: the signer hashed the digest again, with "+
					hash+": it must sign the 32 bytes as they are")
				assert.Equal(t, ramp.Signature{}, sig)
			})
		}
	}
}

// What a signer returned is named for what it is, or taken if it is one of the forms of a signature.
func TestWhatASignerReturnedIsNamed(t *testing.T) {
	key, digest := vectorECDSA(t), vectors[0].digest(t)
	stranger := must.Get(ethcrypto.GenerateKey())(t)
	rs := must.Get(rawSign(key, digest[:], asRS))(t)
	high := append(bytes.Clone(rs[:32]), new(big.Int).Sub(order, new(big.Int).SetBytes(rs[32:])).FillBytes(
		make([]byte, 32))...)
	low := rs
	if new(big.Int).SetBytes(rs[32:]).Cmp(new(big.Int).SetBytes(high[32:])) > 0 {
		low, high = high, rs
	}
	compact := bytes.Clone(low)
	compact[32] |= 0x80
	der := must.Get(rawSign(key, digest[:], asDER))(t)
	text := func(s string) []byte { return []byte(s) }
	const named = "bytes are neither DER nor r||s, but "
	for name, c := range map[string]struct {
		raw  []byte
		want string // "" if it is taken
	}{
		"r||s":                    {rs, ""},
		"r||s with a high s":      {high, ""},
		"r||s with a low s":       {low, ""},
		"v of 0":                  {append(bytes.Clone(low), 0), ""},
		"v of 1":                  {append(bytes.Clone(low), 1), ""},
		"v of 27":                 {append(bytes.Clone(high), 27), ""},
		"v of 28":                 {append(bytes.Clone(high), 28), ""},
		"DER":                     {der, ""},
		"hex":                     {text(hex.EncodeToString(rs)), named + "hex text: decode it"},
		"hex with 0x, v and more": {text("\"0x" + hex.EncodeToString(rs) + "1c\"\n"), named + "hex text: decode it"},
		"hex of DER":              {text(hex.EncodeToString(der)), named + "hex text: decode it"},
		"base64":                  {text(base64.StdEncoding.EncodeToString(der)), named + "base64 text: decode it"},
		"base64 of a URL":         {text(base64.RawURLEncoding.EncodeToString(rs)), named + "base64 text: decode it"},
		"v||r||s":                 {append([]byte{27}, rs...), named + "v||r||s: leave out v, the first byte"},
		"s||r":                    {append(bytes.Clone(rs[32:]), rs[:32]...), named + "s||r: exchange them"},
		"EIP-2098":                {compact, named + "r||s with v in the first bit of s, as in EIP-2098"},
		"of another key": {must.Get(rawSign(stranger, digest[:], asDER))(t),
			ethcrypto.PubkeyToAddress(stranger.PublicKey).Hex()},
		"hex of another key": {text(hex.EncodeToString(must.Get(rawSign(stranger, digest[:], asRS))(t))),
			"its 128 bytes are neither DER nor r||s"},
	} {
		t.Run(name, func(t *testing.T) {
			signer := must.Get(ramp.NewFuncSigner(vectorAddress,
				func(context.Context, []byte) ([]byte, error) { return c.raw, nil }))(t)
			sig, err := signer.Sign(t.Context(), digest)
			if c.want == "" {
				require.NoError(t, err)
				assert.Equal(t, vectorAddress, must.Get(ramp.Recover(digest, sig))(t))
				return
			}
			require.ErrorIs(t, err, ramp.ErrSignature)
			assert.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), hex.EncodeToString(rs[:8]))
		})
	}
}

func TestNewKeySignerRejects(t *testing.T) {
	digits := vectorKey[2:]
	for name, key := range map[string]string{
		"nothing":         "",
		"31 bytes":        digits[:62],
		"no hex":          digits[:63] + "g",
		"0x twice":        "0x0x" + digits,
		"0X":              "0X" + digits,
		"a leading blank": " " + digits,
		"zero":            strings.Repeat("0", 64),
		"the order":       hex.EncodeToString(order.Bytes()),
		"a mnemonic":      "test test test test test test test test test test test junk",
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ramp.NewKeySigner(key)
			assert.Nil(t, s)
			assertNoKey(t, err)
			want := map[string]string{"0X": "it begins with 0X instead of 0x",
				"a leading blank": "it must not begin or end with white space"}[name]
			assert.ErrorContains(t, err, cmp.Or(want, "it must be a secp256k1 private key, 32 bytes in hex"))
		})
	}
}

// assertNoKey checks that a key is rejected without being shown.
func assertNoKey(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, ramp.ErrValidatorKey)
	for _, part := range []string{vectorKey[2:10], "test", "ffff", vectorKey[20:30]} {
		assert.NotContains(t, err.Error(), part)
	}
}

func TestKeysThatAreNoneMakeNoSigner(t *testing.T) {
	p256 := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	other := must.Get(ethcrypto.GenerateKey())(t)
	// The curve is y²=x³+7, so a third root of 1 times x has the same y.
	p := ethcrypto.S256().Params().P
	cubeRoot := new(big.Int).Exp(big.NewInt(2), new(big.Int).Div(new(big.Int).Sub(p, common.Big1), common.Big3), p)
	require.NotEqual(t, common.Big1, cubeRoot)
	with := func(change func(*ecdsa.PrivateKey)) *ecdsa.PrivateKey {
		key := vectorECDSA(t)
		change(key)
		return key
	}
	showing := func(public crypto.PublicKey) crypto.Signer {
		return &keyService{key: vectorECDSA(t), as: asDER, public: public}
	}
	curve := vectorECDSA(t).Curve
	made := map[string]func() (*ramp.Signer, error){
		"no function": func() (*ramp.Signer, error) { return ramp.NewFuncSigner(vectorAddress, nil) },
		"a function of nobody's": func() (*ramp.Signer, error) {
			return ramp.NewFuncSigner(common.Address{}, keyFunc(vectorECDSA(t), asDER))
		},
		"a function of a precompiled contract": func() (*ramp.Signer, error) {
			return ramp.NewFuncSigner(common.HexToAddress("0x100"), keyFunc(vectorECDSA(t), asDER))
		},
	}
	for name, key := range map[string]crypto.Signer{
		"nil":                               nil,
		"a nil key":                         (*ecdsa.PrivateKey)(nil),
		"the zero value":                    new(ecdsa.PrivateKey),
		"a key of P-256":                    p256,
		"a key of Ed25519":                  edwards,
		"a key of RSA":                      must.Get(rsa.GenerateKey(rand.Reader, 2048))(t),
		"no curve":                          with(func(k *ecdsa.PrivateKey) { k.Curve = nil }),
		"no private half":                   with(func(k *ecdsa.PrivateKey) { k.D = nil }),
		"a private half of 0":               with(func(k *ecdsa.PrivateKey) { k.D = new(big.Int) }),
		"a private half beyond the order":   with(func(k *ecdsa.PrivateKey) { k.D = new(big.Int).Add(k.D, order) }),
		"another point of the same Y":       with(func(k *ecdsa.PrivateKey) { k.X.Mul(k.X, cubeRoot).Mod(k.X, p) }),
		"no X":                              with(func(k *ecdsa.PrivateKey) { k.X = nil }),
		"no Y":                              with(func(k *ecdsa.PrivateKey) { k.Y = nil }),
		"no point of the curve":             with(func(k *ecdsa.PrivateKey) { k.X = big.NewInt(1) }),
		"the public half of another key":    with(func(k *ecdsa.PrivateKey) { k.PublicKey = other.PublicKey }),
		"the mirrored public half":          with(func(k *ecdsa.PrivateKey) { k.Y = new(big.Int).Sub(p, k.Y) }),
		"P-256 that calls itself secp256k1": with(func(k *ecdsa.PrivateKey) { k.X, k.Y, k.D = p256.X, p256.Y, p256.D }),
		"a public key by value":             showing(vectorECDSA(t).PublicKey),
		"a nil public key":                  showing((*ecdsa.PublicKey)(nil)),
		"a public key off the curve": showing(&ecdsa.PublicKey{Curve: curve, X: big.NewInt(1),
			Y: big.NewInt(1)}),
		"a public key without points": showing(&ecdsa.PublicKey{Curve: curve}),
	} {
		made[name] = func() (*ramp.Signer, error) { return ramp.NewCryptoSigner(key) }
	}
	for name, make := range made {
		t.Run(name, func(t *testing.T) {
			s, err := make()
			assert.Nil(t, s)
			assertNoKey(t, err)
		})
	}
}

func TestSignerKeepsItsOwnCopyOfTheKey(t *testing.T) {
	key := vectorECDSA(t)
	s := must.Get(ramp.NewCryptoSigner(key))(t)
	key.D.SetInt64(1) // as one wipes a key
	got := must.Get(s.Sign(context.Background(), vectors[0].digest(t)))(t)
	assert.Equal(t, vectors[0].signature(t), got)
}

func TestCryptoSignerIsAskedForTheDigestAsItIs(t *testing.T) {
	digest := vectors[0].digest(t)
	calls := 0
	s := must.Get(ramp.NewCryptoSigner(&keyService{key: vectorECDSA(t), as: asDER,
		see: func(random io.Reader, got []byte, options crypto.SignerOpts) {
			calls++
			assert.NotNil(t, random)
			assert.Equal(t, digest[:], got)
			assert.Equal(t, crypto.SHA256, options.HashFunc())
		}}))(t)
	must.Get(s.Sign(context.Background(), digest))(t)
	assert.Equal(t, 1, calls)

	ended, end := context.WithCancel(context.Background())
	end()
	sig, err := s.Sign(ended, digest)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, ramp.Signature{}, sig)
	assert.Equal(t, 1, calls, "nobody waits for a call that ended")
}

func TestFuncSignerGetsContextAndDigest(t *testing.T) {
	type mark struct{}
	digest := vectors[0].digest(t)
	s := must.Get(ramp.NewFuncSigner(vectorAddress, func(ctx context.Context, got []byte) ([]byte, error) {
		assert.Equal(t, "here", ctx.Value(mark{}))
		assert.Equal(t, digest[:], got)
		sig, err := rawSign(vectorECDSA(t), got, asDER)
		clear(got) // what a service does to its copy is its own affair
		return sig, err
	}))(t)
	got := must.Get(s.Sign(context.WithValue(context.Background(), mark{}, "here"), digest))(t)
	assert.Equal(t, vectors[0].signature(t), got)

	down := errors.New("key service is down")
	s = must.Get(ramp.NewFuncSigner(vectorAddress,
		func(context.Context, []byte) ([]byte, error) { return bytesOf(order, order), down }))(t)
	sig, err := s.Sign(context.Background(), digest)
	require.ErrorIs(t, err, down)
	assert.NotErrorIs(t, err, ramp.ErrSignature, "nothing was signed")
	assert.Equal(t, ramp.Signature{}, sig)
}

// Whatever a key service returns, what leaves the signer is a signature of its
// address over the digest, or an error.
func TestSignerRejectsWhatAKeyServiceReturns(t *testing.T) {
	key, digest := vectorECDSA(t), vectors[0].digest(t)
	stranger := must.Get(ethcrypto.GenerateKey())(t)
	raw := must.Get(rawSign(key, digest[:], asRS))(t)
	r, s := new(big.Int).SetBytes(raw[:32]), new(big.Int).SetBytes(raw[32:])
	der := must.Get(asDER(r, s))(t)
	zero := new(big.Int)
	always := func(answer []byte, err error) func([]byte) []byte {
		require.NoError(t, err)
		return func([]byte) []byte { return answer }
	}
	for name, answer := range map[string]func([]byte) []byte{
		"nothing":                    func([]byte) []byte { return nil },
		"an empty answer":            func([]byte) []byte { return []byte{} },
		"55 bytes":                   func([]byte) []byte { return raw[:55] },
		"63 bytes":                   func([]byte) []byte { return raw[:63] },
		"66 bytes":                   func([]byte) []byte { return append(bytes.Clone(raw), 0, 0) },
		"truncated DER":              func([]byte) []byte { return der[:len(der)-1] },
		"DER and more":               func([]byte) []byte { return append(bytes.Clone(der), 0) },
		"DER of one number":          always(asn1.Marshal(struct{ R *big.Int }{r})),
		"DER of a number alone":      always(asn1.Marshal(r)),
		"DER of two texts":           always(asn1.Marshal(struct{ R, S []byte }{raw[:32], raw[32:]})),
		"r of 0":                     always(asDER(zero, s)),
		"s of 0":                     always(asDER(r, zero)),
		"r below 0":                  always(asDER(new(big.Int).Neg(r), s)),
		"r of the order":             always(asRS(order, s)),
		"s of the order":             always(asRS(r, order)),
		"r and s exchanged":          always(asRS(s, r)),
		"a signature of another key": func(d []byte) []byte { b, _ := rawSign(stranger, d, asDER); return b },
		"a signature of another digest": func(d []byte) []byte {
			b, _ := rawSign(key, ethcrypto.Keccak256(d[1:]), asDER)
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			signer := must.Get(ramp.NewFuncSigner(vectorAddress,
				func(_ context.Context, d []byte) ([]byte, error) { return answer(d), nil }))(t)
			sig, err := signer.Sign(context.Background(), digest)
			require.ErrorIs(t, err, ramp.ErrSignature)
			assert.Equal(t, ramp.Signature{}, sig)
			assert.NotContains(t, err.Error(), hex.EncodeToString(raw[:8]))
			assert.ErrorContains(t, err, fmt.Sprintf("its %d bytes are n", len(answer(digest[:]))))
			for _, number := range []string{"r of ", "s of "} {
				if strings.HasPrefix(name, number) {
					assert.ErrorContains(t, err, "r or s is out of range")
				}
			}
		})
	}
}

func marshalDER(t testing.TB, v any) []byte { return must.Get(asn1.Marshal(v))(t) }

func TestRecoverAcceptsOnlyWhatAContractWould(t *testing.T) {
	digest, good := vectors[0].digest(t), vectors[0].signature(t)
	change := func(f func(*ramp.Signature)) ramp.Signature {
		s := good
		f(&s)
		return s
	}
	for name, sig := range map[string]ramp.Signature{
		"the zero value": {},
		"v of 0":         change(func(s *ramp.Signature) { s[64] = 0 }),
		"v of 26":        change(func(s *ramp.Signature) { s[64] = 26 }),
		"v of 29":        change(func(s *ramp.Signature) { s[64] = 29 }),
		"r of 0":         change(func(s *ramp.Signature) { clear(s[:32]) }),
		"s of 0":         change(func(s *ramp.Signature) { clear(s[32:64]) }),
		"r of the order": change(func(s *ramp.Signature) { order.FillBytes(s[:32]) }),
		"s of the order": change(func(s *ramp.Signature) { order.FillBytes(s[32:64]) }),
		"a high s": change(func(s *ramp.Signature) {
			new(big.Int).Sub(order, new(big.Int).SetBytes(s[32:64])).FillBytes(s[32:64])
			s[64] ^= 7
		}),
		"r that is no x of 5": change(func(s *ramp.Signature) { big.NewInt(5).FillBytes(s[:32]) }),
	} {
		t.Run(name, func(t *testing.T) {
			by, err := ramp.Recover(digest, sig)
			require.ErrorIs(t, err, ramp.ErrSignature)
			assert.Equal(t, common.Address{}, by)
		})
	}

	other := change(func(s *ramp.Signature) { s[64] ^= 7 }) // 27 and 28 exchanged
	by := must.Get(ramp.Recover(digest, other))(t)
	assert.NotEqual(t, vectorAddress, by, "the other v is another key")
	assert.Equal(t, vectors[0].signature(t), good, "the caller's signature is left alone")
}

func TestSignatureText(t *testing.T) {
	for _, v := range vectors {
		assert.Equal(t, vectorAddress, must.Get(ramp.Recover(v.digest(t), v.signature(t)))(t))
	}
	assertHex(t, vectors[0].signatureText, ramp.ParseSignature,
		func(err error) { require.ErrorIs(t, err, ramp.ErrSignature) })
}

// spki is a SubjectPublicKeyInfo as key services write it, made by hand:
// crypto/x509 knows no secp256k1.
func spki(t testing.TB, algorithm, curve asn1.ObjectIdentifier, point []byte) []byte {
	parameters := marshalDER(t, curve)
	return marshalDER(t, struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}{
		pkix.AlgorithmIdentifier{Algorithm: algorithm, Parameters: asn1.RawValue{FullBytes: parameters}},
		asn1.BitString{Bytes: point, BitLength: 8 * len(point)},
	})
}

var (
	ecPublicKey = asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}
	secp256k1   = asn1.ObjectIdentifier{1, 3, 132, 0, 10}
	curveP256   = asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 7}
	rsaKey      = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}
)

func asPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func TestPublicKeyAddress(t *testing.T) {
	key := vectorECDSA(t)
	point := ethcrypto.FromECDSAPub(&key.PublicKey)
	long := spki(t, ecPublicKey, secp256k1, point)
	short := spki(t, ecPublicKey, secp256k1, ethcrypto.CompressPubkey(&key.PublicKey))
	assert.Equal(t, "3056301006072a8648ce3d020106052b8104000a034200", hex.EncodeToString(long[:23]),
		"this is what such a key begins with everywhere")
	for name, public := range map[string][]byte{
		"DER":                        long,
		"DER of a compressed point":  short,
		"CKA_EC_POINT":               marshalDER(t, point),
		"CKA_EC_POINT, compressed":   marshalDER(t, ethcrypto.CompressPubkey(&key.PublicKey)),
		"a point":                    point,
		"a compressed point":         ethcrypto.CompressPubkey(&key.PublicKey),
		"PEM":                        asPEM("PUBLIC KEY", long),
		"PEM of a compressed point":  asPEM("PUBLIC KEY", short),
		"PEM with text before it":    append([]byte("validator key of the game\n"), asPEM("PUBLIC KEY", long)...),
		"PEM with Windows' newlines": bytes.ReplaceAll(asPEM("PUBLIC KEY", long), []byte("\n"), []byte("\r\n")),
	} {
		t.Run(name, func(t *testing.T) {
			got := must.Get(ramp.PublicKeyAddress(public))(t)
			assert.Equal(t, vectorAddress, got)
		})
	}
}

// A point 04||X||Y whose X begins with 3f could also be an OCTET STRING of 63 bytes.
func TestPublicKeyAddressOfAPointThatLooksLikeDER(t *testing.T) {
	for n := int64(1); ; n++ {
		key := must.Get(ethcrypto.ToECDSA(big.NewInt(n).FillBytes(make([]byte, 32))))(t)
		point := ethcrypto.FromECDSAPub(&key.PublicKey)
		if point[1] != 0x3f {
			continue
		}
		var text []byte
		_, err := asn1.Unmarshal(point, &text)
		require.NoError(t, err)
		assert.Equal(t, ethcrypto.PubkeyToAddress(key.PublicKey), must.Get(ramp.PublicKeyAddress(point))(t))
		return
	}
}

func TestPublicKeyAddressRejects(t *testing.T) {
	key := vectorECDSA(t)
	point := ethcrypto.FromECDSAPub(&key.PublicKey)
	good := spki(t, ecPublicKey, secp256k1, point)
	p256 := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	nist := must.Get(x509.MarshalPKIXPublicKey(&p256.PublicKey))(t)
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	curve25519 := must.Get(x509.MarshalPKIXPublicKey(edwards))(t)
	sec1 := must.Get(x509.MarshalECPrivateKey(p256))(t)
	off := bytes.Clone(point)
	off[64] ^= 1
	// x=1 is on the curve. A coordinate that is larger by the field's prime is a
	// second encoding of the same point, with another address.
	field := ethcrypto.S256().Params().P
	one := must.Get(ethcrypto.DecompressPubkey(append([]byte{2}, big.NewInt(1).FillBytes(make([]byte, 32))...)))(t)
	beyond := ethcrypto.FromECDSAPub(one)
	new(big.Int).Add(field, one.X).FillBytes(beyond[1:33])
	const form = "it must be a secp256k1 public key, DER, PEM or CKA_EC_POINT"
	const curve = "it is on the curve 1.2.840.10045.3.1.7, and must be on secp256k1, which is 1.3.132.0.10"
	const noPoint = "it is not a point on secp256k1: the key must be on this curve"
	p256Point := must.Get(p256.PublicKey.Bytes())(t)
	for name, tt := range map[string]struct {
		public []byte
		want   string
	}{
		"nothing":                        {nil, form},
		"text":                           {[]byte("0x04" + hex.EncodeToString(point)), form},
		"a truncated key":                {good[:len(good)-1], form},
		"a key and more":                 {append(bytes.Clone(good), 0), form},
		"a key of P-256":                 {nist, curve},
		"a key of Ed25519":               {curve25519, form},
		"a private key":                  {asPEM("EC PRIVATE KEY", sec1), form},
		"another algorithm":              {spki(t, rsaKey, secp256k1, point), form},
		"another curve's name":           {spki(t, ecPublicKey, curveP256, point), curve},
		"the point at infinity":          {spki(t, ecPublicKey, secp256k1, []byte{0}), noPoint},
		"a point off the curve":          {spki(t, ecPublicKey, secp256k1, off), noPoint},
		"a coordinate beyond the field":  {spki(t, ecPublicKey, secp256k1, beyond), noPoint},
		"a point of another form":        {spki(t, ecPublicKey, secp256k1, append([]byte{6}, point[1:]...)), noPoint},
		"a point of P-256":               {p256Point, noPoint},
		"CKA_EC_POINT of P-256":          {marshalDER(t, p256Point), noPoint},
		"CKA_EC_POINT off the curve":     {marshalDER(t, off), noPoint},
		"CKA_EC_POINT and more":          {append(marshalDER(t, point), 0), form},
		"CKA_EC_POINT in a CKA_EC_POINT": {marshalDER(t, marshalDER(t, point)), noPoint},
		"a truncated CKA_EC_POINT":       {marshalDER(t, point)[:66], form},
		"x and y alone":                  {point[1:], form},
		"a point beyond the field":       {beyond, noPoint},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ramp.PublicKeyAddress(tt.public)
			assertNoKey(t, err)
			assert.ErrorContains(t, err, tt.want)
			assert.Equal(t, common.Address{}, got)
		})
	}
}

// On mainnet, a key that tools print is refused: whoever has it mints without assets. On testnet, it does
// no harm.
func TestAKeyThatEverybodyKnowsIsNotForMainnet(t *testing.T) {
	const own = "0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
	for key, want := range map[string]string{
		"ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80": "it is one of the accounts of hardhat",
		"4f3edf983ac636a65a842ce7c78d9aa706d3b113bce9c46f30d7d21715b23b1d": "it is one of the accounts of ganache",
		strings.Repeat("0", 63) + "1":                                      "it is a small number",
		strings.Repeat("0", 62) + "ff":                                     "it is a small number",
		strings.Repeat("46", 32):                                           "it is one byte, repeated",
		own:                                                                "",
	} {
		for _, network := range []ramp.Network{ramp.Mainnet, ramp.Testnet} {
			terms := must.Get(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: network,
				Products: []ramp.Product{{Name: "gold", Token: testToken, Materials: []ramp.Item{{ID: "gold",
					Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}}}}}))(t)
			signer := must.Get(ramp.NewKeySigner(key))(t)
			_, err := ramp.NewHandler(withStore(ramp.HandlerConfig{Terms: terms, Key: testKey(t), Signer: signer}))
			if want == "" || network == ramp.Testnet {
				assert.NoError(t, err)
				continue
			}
			assert.ErrorContains(t, err, "HandlerConfig.Signer has the address "+signer.Address().Hex()+
				", whose private key everybody knows ("+want)
			assert.NotContains(t, err.Error(), key)
		}
	}
}
