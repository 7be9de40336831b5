// Package hsm has a validator key in a token that speaks PKCS #11, such as an HSM, AWS
// CloudHSM, or SoftHSM for tests. Nobody can read the key, the server included. Copy this
// file. It needs cgo, and the PKCS #11 library of the token's maker.
//
// Generate makes the key in the token, once. Then a server opens it:
//
//	key, err := hsm.Open(hsm.Config{
//		Library: "/usr/lib/softhsm/libsofthsm2.so",
//		Token:   "game",
//		PIN:     os.Getenv("HSM_PIN"),
//		Label:   "ramp validator",
//	})
//	…
//	handler, err := ramp.NewHandler(ramp.HandlerConfig{Signer: key.Signer(), …})
package hsm

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/miekg/pkcs11"
	ramp "github.com/token-ramp/ramp-go"
)

// Config names a key in a token.
type Config struct {
	Library string // path of the PKCS #11 library of the token's maker
	Token   string // label of the token
	PIN     string // PIN of the token's user, from your secret store
	Label   string // label of the key pair
}

// Format writes the labels, and never the PIN.
func (c Config) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "%q in token %q", c.Label, c.Token) }

// Key is a key in a token. It is safe for concurrent use.
type Key struct {
	config Config
	module *pkcs11.Ctx
	slot   uint
	signer *ramp.Signer

	free     chan session // those that no call uses
	wrongPIN atomic.Bool  // the token rejected the PIN, and would lock itself after a few more
}

// atOnce is how many signatures a process makes at the same time. If the token hangs,
// that many calls hang with it, and the others end with their deadline.
const atOnce = 8

// session is a session with the token. The zero value is none yet.
type session struct {
	open   bool
	handle pkcs11.SessionHandle
	key    pkcs11.ObjectHandle // the private key
}

// Open opens the token, and finds the key. A key that can be read, or is on another curve
// than secp256k1, is an error.
func Open(c Config) (*Key, error) {
	k, err := load(c)
	if err != nil {
		return nil, err
	}
	if k.signer, err = k.newSigner(); err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

// Signer returns the signer for HandlerConfig.Signer. Its Address is for the console.
func (k *Key) Signer() *ramp.Signer { return k.signer }

// Close waits for the signatures that are being made, and unloads the library.
func (k *Key) Close() {
	for range atOnce {
		<-k.free
	}
	_ = k.module.Finalize() // nothing is left to save
	k.module.Destroy()
}

// load loads the library, and finds the token.
func load(c Config) (*Key, error) {
	k := &Key{config: c, module: pkcs11.New(c.Library), free: make(chan session, atOnce)}
	if k.module == nil {
		return nil, fmt.Errorf("hsm: %s cannot be loaded as a PKCS #11 library", c.Library)
	}
	for range atOnce {
		k.free <- session{}
	}
	err := k.module.Initialize()
	if err != nil {
		k.module.Destroy()
		return nil, fmt.Errorf("hsm: initialize %s: %w", c.Library, err)
	}
	slots, err := k.module.GetSlotList(true)
	for _, slot := range slots {
		if info, err := k.module.GetTokenInfo(slot); err == nil && info.Label == c.Token {
			k.slot = slot
			return k, nil
		}
	}
	k.Close()
	if err != nil {
		return nil, fmt.Errorf("hsm: slots of %s: %w", c.Library, err)
	}
	return nil, fmt.Errorf("hsm: %s has no token with the label %q", c.Library, c.Token)
}

// newSigner checks the key, and returns a signer of it.
func (k *Key) newSigner() (*ramp.Signer, error) {
	s, err := k.login(0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = k.module.CloseSession(s) }() // which ends the login, too
	private, err := k.object(s, pkcs11.CKO_PRIVATE_KEY)
	if err != nil {
		return nil, err
	}
	secrecy, err := k.module.GetAttributeValue(s, private, []*pkcs11.Attribute{
		pkcs11.NewAttribute(pkcs11.CKA_SENSITIVE, nil),
		pkcs11.NewAttribute(pkcs11.CKA_EXTRACTABLE, nil),
	})
	if err != nil {
		return nil, fmt.Errorf("hsm: attributes of the key %q: %w", k.config.Label, err)
	}
	if !isTrue(secrecy[0]) || isTrue(secrecy[1]) {
		return nil, fmt.Errorf("hsm: the key %q can be read out of the token: Generate another one",
			k.config.Label)
	}
	public, err := k.object(s, pkcs11.CKO_PUBLIC_KEY)
	if err != nil {
		return nil, err
	}
	point, err := k.module.GetAttributeValue(s, public,
		[]*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_EC_POINT, nil)})
	if err != nil {
		return nil, fmt.Errorf("hsm: point of the key %q: %w", k.config.Label, err)
	}
	address, err := ramp.PublicKeyAddress(point[0].Value)
	if err != nil {
		return nil, fmt.Errorf("hsm: the key %q: %w", k.config.Label, err)
	}
	return ramp.NewFuncSigner(address, k.sign)
}

func isTrue(a *pkcs11.Attribute) bool { return len(a.Value) == 1 && a.Value[0] != 0 }

// sign signs the digest as it is. The token returns r||s.
func (k *Key) sign(ctx context.Context, digest []byte) (signature []byte, err error) {
	var s session
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case s = <-k.free:
	}
	defer func() { k.free <- s }()
	// A session ends if the token restarts, and some tokens end one that is not used.
	for range 2 {
		if s, err = k.opened(s); err != nil {
			continue
		}
		mechanism := []*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_ECDSA, nil)}
		if err = k.module.SignInit(s.handle, mechanism, s.key); err == nil {
			if signature, err = k.module.Sign(s.handle, digest); err == nil {
				return signature, nil
			}
		}
		_ = k.module.CloseSession(s.handle) // it may have ended
		s = session{}
	}
	return nil, fmt.Errorf("hsm: sign with the key %q: %w", k.config.Label, err)
}

// opened returns the session, or a new one if it is not open.
func (k *Key) opened(s session) (session, error) {
	if s.open {
		return s, nil
	}
	handle, err := k.login(0)
	if err != nil {
		return session{}, err
	}
	key, err := k.object(handle, pkcs11.CKO_PRIVATE_KEY)
	if err != nil {
		_ = k.module.CloseSession(handle)
		return session{}, err
	}
	return session{open: true, handle: handle, key: key}, nil
}

// login opens a session of the token's user.
func (k *Key) login(flags uint) (pkcs11.SessionHandle, error) {
	if k.wrongPIN.Load() {
		return 0, fmt.Errorf("hsm: the token %q has rejected the PIN", k.config.Token)
	}
	s, err := k.module.OpenSession(k.slot, pkcs11.CKF_SERIAL_SESSION|flags)
	if err != nil {
		return 0, fmt.Errorf("hsm: session with the token %q: %w", k.config.Token, err)
	}
	err = k.module.Login(s, pkcs11.CKU_USER, k.config.PIN)
	if err == nil || errors.Is(err, pkcs11.Error(pkcs11.CKR_USER_ALREADY_LOGGED_IN)) { // by another session
		return s, nil
	}
	k.wrongPIN.Store(errors.Is(err, pkcs11.Error(pkcs11.CKR_PIN_INCORRECT)))
	_ = k.module.CloseSession(s)
	return 0, fmt.Errorf("hsm: login to the token %q: %w", k.config.Token, err)
}

// object finds the half of the key pair that has the class.
func (k *Key) object(s pkcs11.SessionHandle, class uint) (pkcs11.ObjectHandle, error) {
	found, err := k.objects(s, class)
	if err != nil {
		return 0, fmt.Errorf("hsm: find the key %q: %w", k.config.Label, err)
	}
	half := map[uint]string{pkcs11.CKO_PRIVATE_KEY: "private", pkcs11.CKO_PUBLIC_KEY: "public"}[class]
	switch len(found) {
	case 0:
		return 0, fmt.Errorf("hsm: the token %q has no %s key %q", k.config.Token, half, k.config.Label)
	case 1:
		return found[0], nil
	}
	return 0, fmt.Errorf("hsm: the token %q has several %s keys %q", k.config.Token, half, k.config.Label)
}

// objects returns up to two objects of the class that have the key's label.
func (k *Key) objects(s pkcs11.SessionHandle, class uint) ([]pkcs11.ObjectHandle, error) {
	if err := k.module.FindObjectsInit(s, []*pkcs11.Attribute{
		pkcs11.NewAttribute(pkcs11.CKA_CLASS, class),
		pkcs11.NewAttribute(pkcs11.CKA_LABEL, k.config.Label),
	}); err != nil {
		return nil, err
	}
	found, _, err := k.module.FindObjects(s, 2)
	return found, errors.Join(err, k.module.FindObjectsFinal(s))
}

// secp256k1 is the name of the curve in DER, 1.3.132.0.10.
var secp256k1 = []byte{0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x0a}

// Generate makes the key pair in the token, from which its private half can never be read.
// If the label is in use, that is an error.
func Generate(c Config) error { return generate(c, secp256k1, true) }

func generate(c Config, curve []byte, secret bool) error {
	k, err := load(c)
	if err != nil {
		return err
	}
	defer k.Close()
	s, err := k.login(pkcs11.CKF_RW_SESSION)
	if err != nil {
		return err
	}
	if found, err := k.objects(s, pkcs11.CKO_PRIVATE_KEY); err != nil || len(found) > 0 {
		return errors.Join(fmt.Errorf("hsm: the token %q has a key %q", c.Token, c.Label), err)
	}
	_, _, err = k.module.GenerateKeyPair(s,
		[]*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_EC_KEY_PAIR_GEN, nil)},
		[]*pkcs11.Attribute{
			pkcs11.NewAttribute(pkcs11.CKA_LABEL, c.Label),
			pkcs11.NewAttribute(pkcs11.CKA_TOKEN, true),
			pkcs11.NewAttribute(pkcs11.CKA_VERIFY, true),
			pkcs11.NewAttribute(pkcs11.CKA_EC_PARAMS, curve),
		},
		[]*pkcs11.Attribute{
			pkcs11.NewAttribute(pkcs11.CKA_LABEL, c.Label),
			pkcs11.NewAttribute(pkcs11.CKA_TOKEN, true),
			pkcs11.NewAttribute(pkcs11.CKA_PRIVATE, true),
			pkcs11.NewAttribute(pkcs11.CKA_SIGN, true),
			pkcs11.NewAttribute(pkcs11.CKA_SENSITIVE, secret),
			pkcs11.NewAttribute(pkcs11.CKA_EXTRACTABLE, !secret),
		})
	if err != nil {
		return fmt.Errorf("hsm: generate the key %q: %w", c.Label, err)
	}
	return nil
}
