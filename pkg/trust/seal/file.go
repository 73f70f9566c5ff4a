package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tink-crypto/tink-go/v2/daead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// widestMode is the widest mode a key file may have. Group read is for Kubernetes,
	// where fsGroup gives the files of a secret to a group.
	widestMode fs.FileMode = 0o640
	// maxSize bounds what is read, in bytes; one key takes about 250.
	maxSize = 1 << 20
)

// keys are the keys of one read of the key file.
type keys struct {
	handle *keyset.Handle
	aead   tink.DeterministicAEAD
	info   fs.FileInfo
	// before are keys of earlier reads, some of which are no longer in the file; nil
	// means none. They open, but seal nothing.
	before *keys
}

// open opens what was sealed with any key that was in the file since the
// program started.
func (k *keys) open(sealed, context []byte) (plain []byte, err error) {
	for ; k != nil; k = k.before {
		if plain, err = k.aead.DecryptDeterministically(sealed, context); err == nil {
			return plain, nil
		}
	}
	return nil, err
}

// contains reports whether each key of other is one of these.
func (k *keys) contains(other *keys) bool {
	ids := map[uint32]bool{}
	for _, info := range k.handle.KeysetInfo().GetKeyInfo() {
		ids[info.GetKeyId()] = true
	}
	for _, info := range other.handle.KeysetInfo().GetKeyInfo() {
		if !ids[info.GetKeyId()] {
			return false
		}
	}
	return true
}

// matchFile reports whether the keys were read from the file that info describes.
func (k *keys) matchFile(info fs.FileInfo) bool {
	return os.SameFile(k.info, info) && k.info.ModTime().Equal(info.ModTime()) && k.info.Size() == info.Size()
}

func readKeys(path string) (*keys, error) {
	// O_NONBLOCK: opening a pipe that nobody writes to must not hang.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, readError(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, readError(path, err)
	}
	mode := info.Mode()
	if !mode.IsRegular() {
		return nil, fileError(path, "is not a regular file", "name a file with --secret-key-file", nil)
	}
	if mode.Perm()&^widestMode != 0 {
		return nil, fileError(path, fmt.Sprintf("has mode %04o, which gives too many users access", mode.Perm()),
			"chmod 600 "+path+" (0640 at most); in Kubernetes set defaultMode: 0400 on the volume", nil)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxSize))
	if err != nil {
		return nil, readError(path, err)
	}
	const hint = "make one with: tinkey create-keyset --key-template AES256_SIV --out-format json"
	// The causes are left out: they may quote the file.
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(content)))
	if err != nil {
		return nil, fileError(path, "does not hold a cleartext tink keyset in JSON", hint, nil)
	}
	aead, err := daead.New(handle)
	if err != nil {
		return nil, fileError(path, "holds a key that is not AES256-SIV", hint, nil)
	}
	return &keys{handle: handle, aead: aead, info: info}, nil
}

// Rotate makes another key the primary one, which seals from now on, and keeps the
// others for what they have sealed. The other key is a new one, or the last one of the
// file if Add left it behind the primary key. The mode and the owner of the file stay.
// Errors are those of Open.
func Rotate(path string) error {
	return change(path, func(m *keyset.Manager, old *keyset.Handle) error {
		last, err := old.Entry(old.Len() - 1)
		if err != nil {
			return err
		}
		if last.IsPrimary() || last.KeyStatus() != keyset.Enabled {
			return addPrimary(m, old)
		}
		return m.SetPrimary(last.KeyID())
	})
}

// Add adds a new key to the file that only opens until Rotate, so that every process
// can have it before anything is sealed with it. Errors are those of Open.
func Add(path string) error {
	return change(path, func(m *keyset.Manager, _ *keyset.Handle) error {
		_, err := m.Add(daead.AESSIVKeyTemplate())
		return err
	})
}

// RemoveOld leaves only the primary key in the file and returns how many keys it
// removed. What those have sealed no longer opens: seal it again first. primary is the
// key that sealed it again (see Keyring.Primary); if the file now has another,
// RemoveOld returns a Conflict error. Other errors are those of Open.
func RemoveOld(path string, primary uint32) (removed int, err error) {
	err = change(path, func(m *keyset.Manager, old *keyset.Handle) error {
		for i := range old.Len() {
			entry, err := old.Entry(i)
			if err != nil {
				return err
			}
			switch {
			case entry.KeyID() == primary && entry.IsPrimary():
				continue
			case entry.IsPrimary():
				return &model.Error{
					Kind: model.Conflict, Message: "the key in " + path + " was changed meanwhile, and no key was removed",
					Hint: "run gatehouse secret-key remove-old once nobody else changes it",
				}
			}
			if err := m.Delete(entry.KeyID()); err != nil {
				return err
			}
			removed++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

func addPrimary(m *keyset.Manager, _ *keyset.Handle) error {
	id, err := m.Add(daead.AESSIVKeyTemplate())
	if err != nil {
		return err
	}
	return m.SetPrimary(id)
}

// change replaces the file with one that has the keys that edit leaves.
func change(path string, edit func(m *keyset.Manager, old *keyset.Handle) error) error {
	// A symbolic link stays: its target is replaced.
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return readError(path, err)
	}
	unlock, err := lockDirectory(target)
	if err != nil {
		return writeError(target, err)
	}
	defer unlock()
	old, err := readKeys(target)
	if err != nil {
		return err
	}
	m := keyset.NewManagerFromHandle(old.handle)
	err = edit(m, old.handle)
	if _, ok := errors.AsType[*model.Error](err); ok {
		return err
	}
	if err != nil {
		return fmt.Errorf("changing the keys of %s: %w", target, err)
	}
	if err := write(target, m, old.info, os.Rename); err != nil {
		return writeError(target, err)
	}
	return nil
}

// create makes the file with one new key, unless it exists by now.
func create(path string) (created bool, err error) {
	m := keyset.NewManager()
	if err := addPrimary(m, nil); err != nil {
		return false, fmt.Errorf("making a key: %w", err)
	}
	// Unlike a rename, a link replaces nothing.
	err = write(path, m, nil, os.Link)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, writeError(path, err)
	}
	return true, nil
}

// lockDirectory lets one process at a time change the file, so that none undoes
// another's change. It waits for a change in progress.
func lockDirectory(path string) (unlock func(), err error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(dir.Fd()), syscall.LOCK_EX)
		if err == nil {
			return func() { _ = dir.Close() }, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", dir.Name(), err), dir.Close())
		}
	}
}

// write makes a complete file next to path, which place then renames, so that a reader
// finds all of it or nothing, even after a power cut.
func write(path string, m *keyset.Manager, like fs.FileInfo, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // after a rename it is gone
	if err := errors.Join(writeKeys(f, m, like), f.Close()); err != nil {
		return err
	}
	if err := place(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// writeKeys writes the keys to a new file. The file has mode 0600, or the owner and
// mode of like unless that is nil.
func writeKeys(f *os.File, m *keyset.Manager, like fs.FileInfo) error {
	if like != nil {
		if owner, ok := like.Sys().(*syscall.Stat_t); ok {
			if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
				return err
			}
		}
		if err := f.Chmod(like.Mode().Perm()); err != nil {
			return err
		}
	}
	handle, err := m.Handle()
	if err != nil {
		return err
	}
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(f)); err != nil {
		return err
	}
	return f.Sync()
}

// MissingError says that the key file does not exist.
func MissingError(path string) *model.Error {
	return fileError(path, "does not exist",
		"restore it, or name the right one with --secret-key-file: nothing else opens what was sealed with it", nil)
}

func readError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return MissingError(path)
	}
	return fileError(path, "cannot be read", "the user that runs the program needs to read it", err)
}

func writeError(path string, err error) error {
	hint := "the user that runs the program needs to own it and to write its directory, and the disk must not be full"
	if errors.Is(err, fs.ErrNotExist) {
		hint = "create the directory first: mkdir -p " + filepath.Dir(path)
	}
	return fileError(path, "cannot be written", hint, err)
}

func fileError(path, wrong, hint string, cause error) *model.Error {
	return &model.Error{Kind: model.Unavailable, Message: "the key file " + path + " " + wrong, Hint: hint, Err: cause}
}
