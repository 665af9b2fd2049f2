package grant

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	keyFormat     = "sallyport private key 1"
	cipherNone    = "none"
	cipherGCM     = "aes-256-gcm"
	kdfPBKDF2     = "pbkdf2-sha256"
	iterations    = 600_000    // of the passphrase's hash; fewer are refused
	maxIterations = 10_000_000 // so that a damaged file cannot keep us busy
	saltLen       = 16         // bytes
	maxKeyFile    = 4096       // bytes of a private key file
	keyFileMode   = 0o600
)

// keyFile is the JSON of a private key at rest. Everything but Seed is
// authenticated together with it.
type keyFile struct {
	Format     string `json:"format"`
	Public     string `json:"public"`
	Cipher     string `json:"cipher"`
	KDF        string `json:"kdf,omitempty"`
	Iterations int    `json:"iterations,omitempty"`
	Salt       []byte `json:"salt,omitempty"`
	Nonce      []byte `json:"nonce,omitempty"`
	Seed       []byte `json:"seed"`
}

// Save writes the key to a new file of mode 0600 and makes it durable; an
// existing entry of any kind is an error ([os.ErrExist]) and is left alone. With
// a passphrase the key is encrypted; with nil it is not, which only a user who
// said so should get. An empty passphrase is [ErrPassphrase]. On error no file is
// left behind.
func (k PrivateKey) Save(path string, passphrase []byte) error {
	data, err := k.encode(passphrase)
	if err != nil {
		return fmt.Errorf("save private key %q: %w", path, err)
	}
	if err := createDurably(path, data); err != nil {
		return fmt.Errorf("save private key %q: %w", path, err)
	}
	return nil
}

// LoadPrivateKey reads a file that [PrivateKey.Save] wrote. It refuses with
// [ErrKeyFile] a file that is wider than 0600, linked (symbolic or hard), not a
// regular file, not the caller's, or damaged in any way; with [ErrPassphrase] a
// wrong or missing passphrase. A passphrase for a key without one is ignored.
func LoadPrivateKey(path string, passphrase []byte) (PrivateKey, error) {
	file, err := readKeyFile(path)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("load private key %q: %w", path, err)
	}
	k, err := file.key(passphrase)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("load private key %q: %w", path, err)
	}
	return k, nil
}

// Encrypted reports whether the private key in the file needs a passphrase. It
// refuses the files that [LoadPrivateKey] refuses.
func Encrypted(path string) (bool, error) {
	file, err := readKeyFile(path)
	if err != nil {
		return false, fmt.Errorf("look at private key %q: %w", path, err)
	}
	return file.Cipher != cipherNone, nil
}

func (k PrivateKey) encode(passphrase []byte) ([]byte, error) {
	if k.secret == nil {
		return nil, fmt.Errorf("%w: no private key", ErrKey)
	}
	file := keyFile{Format: keyFormat, Public: k.Public().String(), Cipher: cipherNone, Seed: k.secret().Seed()}
	if passphrase != nil {
		if err := file.seal(passphrase); err != nil {
			return nil, err
		}
	}
	return file.encode()
}

func (f keyFile) encode() ([]byte, error) {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(data, '\n'), nil
}

// seal encrypts the seed in place.
func (f *keyFile) seal(passphrase []byte) error {
	if len(passphrase) == 0 {
		return fmt.Errorf("%w: it is empty", ErrPassphrase)
	}
	f.Cipher, f.KDF, f.Iterations = cipherGCM, kdfPBKDF2, iterations
	f.Salt = make([]byte, saltLen)
	if _, err := rand.Read(f.Salt); err != nil {
		return err
	}
	aead, err := f.aead(passphrase)
	if err != nil {
		return err
	}
	f.Nonce = make([]byte, aead.NonceSize())
	if _, err := rand.Read(f.Nonce); err != nil {
		return err
	}
	header, err := f.header()
	if err != nil {
		return err
	}
	f.Seed = aead.Seal(nil, f.Nonce, f.Seed, header)
	return nil
}

func (f keyFile) aead(passphrase []byte) (cipher.AEAD, error) {
	key, err := pbkdf2.Key(sha256.New, string(passphrase), f.Salt, f.Iterations, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// header is what the cipher authenticates besides the seed.
func (f keyFile) header() ([]byte, error) {
	f.Seed = nil
	return json.Marshal(f)
}

// parseKeyFile accepts exactly what keyFile.encode writes.
func parseKeyFile(data []byte) (keyFile, error) {
	var f keyFile
	if err := json.Unmarshal(data, &f); err != nil {
		return keyFile{}, fmt.Errorf("%w: cut off or damaged", ErrKeyFile)
	}
	again, err := f.encode()
	if err != nil || !bytes.Equal(again, data) || f.Format != keyFormat {
		return keyFile{}, fmt.Errorf("%w: damaged, or of another version", ErrKeyFile)
	}
	if !f.plausible() {
		return keyFile{}, fmt.Errorf("%w: unknown or unsafe encryption", ErrKeyFile)
	}
	return f, nil
}

func (f keyFile) plausible() bool {
	switch f.Cipher {
	case cipherNone:
		return f.KDF == "" && f.Iterations == 0 && f.Salt == nil && f.Nonce == nil && len(f.Seed) == ed25519.SeedSize
	case cipherGCM:
		return f.KDF == kdfPBKDF2 && iterations <= f.Iterations && f.Iterations <= maxIterations &&
			len(f.Salt) == saltLen && len(f.Nonce) == 12 && len(f.Seed) == ed25519.SeedSize+16
	default:
		return false
	}
}

// key decrypts the seed if need be and checks it against the public line.
func (f keyFile) key(passphrase []byte) (PrivateKey, error) {
	public, err := ParsePublicKey(f.Public)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("%w: %w", ErrKeyFile, err)
	}
	seed := f.Seed
	if f.Cipher != cipherNone {
		if seed, err = f.open(passphrase); err != nil {
			return PrivateKey{}, err
		}
	}
	k := newPrivateKey(public.Name, seed)
	if !k.Public().Key.Equal(public.Key) {
		return PrivateKey{}, fmt.Errorf("%w: private and public part differ", ErrKeyFile)
	}
	return k, nil
}

func (f keyFile) open(passphrase []byte) ([]byte, error) {
	if len(passphrase) == 0 {
		return nil, ErrPassphrase
	}
	aead, err := f.aead(passphrase)
	if err != nil {
		return nil, err
	}
	header, err := f.header()
	if err != nil {
		return nil, err
	}
	seed, err := aead.Open(nil, f.Nonce, f.Seed, header)
	if err != nil {
		return nil, ErrPassphrase // or a damaged file: the cipher cannot tell
	}
	return seed, nil
}

func createDurably(path string, data []byte) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, keyFileMode)
	if err != nil {
		return withoutPath(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(withoutPath(err), os.Remove(path))
		}
	}()
	if err := writeDurably(file, data); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Close(); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func writeDurably(file *os.File, data []byte) error {
	if err := file.Chmod(keyFileMode); err != nil { // whatever the umask
		return err
	}
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.Sync()
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// readKeyFile opens once and checks what it opened.
func readKeyFile(path string) (keyFile, error) {
	data, err := ReadPrivate(path, maxKeyFile)
	if err != nil {
		return keyFile{}, err
	}
	return parseKeyFile(data)
}

// ReadPrivate reads a file that only its owner may have read, of at most limit bytes.
// It refuses with [ErrKeyFile] what [LoadPrivateKey] refuses for being wider than 0600,
// linked, no regular file, not the caller's, or too large. Its errors do not name the
// path, and hold nothing of the file.
func ReadPrivate(path string, limit int64) ([]byte, error) {
	file, err := openKeyFile(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, withoutPath(err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: larger than %d bytes", ErrKeyFile, limit)
	}
	return data, nil
}

// withoutPath drops the path from an error of package os: the caller names it.
func withoutPath(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
