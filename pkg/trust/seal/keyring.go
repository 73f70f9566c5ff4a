package seal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Keyring seals and unseals with the keys of one file. It is safe for concurrent use. The zero value is not
// usable: see Open and OpenOrCreate.
type Keyring struct {
	path    string
	reading sync.Mutex // held while the file is read again
	keys    atomic.Pointer[keys]
}

var _ model.Sealer = (*Keyring)(nil)

// Open reads the key file. Its errors are *model.Error of kind Unavailable.
func Open(path string) (*Keyring, error) {
	k := &Keyring{path: path}
	if err := k.Reload(); err != nil {
		return nil, err
	}
	return k, nil
}

// OpenOrCreate reads the key file, or creates it if it does not exist. created reports whether this call
// created it: of several calls at the same time only one does, and all return its key. Errors are those of
// Open.
func OpenOrCreate(path string) (k *Keyring, created bool, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if created, err = create(path); err != nil {
			return nil, false, err
		}
	}
	k, err = Open(path)
	return k, created, err
}

// Reload reads the file again. If that fails, the keys stay as they were. Errors are those of Open. Seal and
// Unseal notice a new file without it.
func (k *Keyring) Reload() error {
	k.reading.Lock()
	defer k.reading.Unlock()
	return k.read()
}

// read requires the lock.
func (k *Keyring) read() error {
	read, err := readKeys(k.path)
	if err != nil {
		return err
	}
	if known := k.keys.Load(); known != nil {
		read.before = known.before
		if !read.contains(known) {
			read.before = known
		}
	}
	k.keys.Store(read)
	return nil
}

// current returns the keys of the file as it is now. It reads the file only if it has changed since the last
// read.
func (k *Keyring) current() (*keys, error) {
	known := k.keys.Load()
	if info, err := os.Stat(k.path); err == nil && known.matchFile(info) {
		return known, nil
	}
	k.reading.Lock()
	defer k.reading.Unlock()
	if k.keys.Load() == known { // no other goroutine has read it meanwhile
		if err := k.read(); err != nil {
			return nil, err
		}
	}
	return k.keys.Load(), nil
}

// Seal returns plain as a text that Unseal opens only with the same context. It uses the primary key of the
// file as it is now, even right after a rotation by another process: a text sealed with a key that is about
// to be removed would be lost. So it needs the file; without it, the error is that of Open.
func (k *Keyring) Seal(plain, context string) (string, error) {
	now, err := k.current()
	if err != nil {
		return "", err
	}
	sealed, err := now.aead.EncryptDeterministically([]byte(plain), []byte(context))
	if err != nil {
		return "", fmt.Errorf("sealing: %w", err)
	}
	return model.SealedPrefix + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Primary returns the number of the key that Seal uses now. Errors are those of Open.
func (k *Keyring) Primary() (uint32, error) {
	now, err := k.current()
	if err != nil {
		return 0, err
	}
	entry, err := now.handle.Primary()
	if err != nil {
		return 0, fmt.Errorf("finding the primary key of %s: %w", k.path, err)
	}
	return entry.KeyID(), nil
}

// Unseal opens a text that Seal made for the same context, with any key that was in the file at a read, now
// or earlier: the program can still open what it has in memory after a key was removed. If no key in memory
// opens the text and the file has changed, Unseal reads the file again once. A text that does not open is a
// *model.Error of kind Invalid; if a changed file cannot be read, the error is that of Open.
func (k *Keyring) Unseal(sealed, context string) (string, error) {
	raw, err := decode(sealed)
	if err != nil {
		return "", err
	}
	tried := k.keys.Load()
	plain, err := tried.open(raw, []byte(context))
	if err == nil {
		return string(plain), nil
	}
	now, err := k.current()
	if err != nil {
		return "", err
	}
	if now != tried {
		if plain, err = now.open(raw, []byte(context)); err == nil {
			return string(plain), nil
		}
	}
	return "", &model.Error{
		Kind: model.Invalid, Message: "the sealed text does not open",
		Hint: "it was sealed with another key or for another place, or was changed; " +
			"give the key file that it was sealed with, or the secret again",
		Err: fmt.Errorf("no key of %s opens it", k.path),
	}
}

// decode accepts only what Seal writes: two different texts are never the same secret.
func decode(sealed string) ([]byte, error) {
	text, ok := strings.CutPrefix(sealed, model.SealedPrefix)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil || base64.RawURLEncoding.EncodeToString(raw) != text {
		return nil, &model.Error{
			Kind: model.Invalid, Message: "the text is not a sealed text",
			Hint: "a sealed text is " + model.SealedPrefix + " and base64url without padding, as it was read",
		}
	}
	return raw, nil
}
