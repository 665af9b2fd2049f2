//go:build unix

package grant

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func saved(t *testing.T, passphrase []byte) (PrivateKey, string) {
	t.Helper()
	key, path := newKey(t, "anna"), filepath.Join(t.TempDir(), "anna.key")
	if err := key.Save(path, passphrase); err != nil {
		t.Fatal(err)
	}
	return key, path
}

func mustLoad(t *testing.T, path string, passphrase []byte, want PrivateKey) {
	t.Helper()
	got, err := LoadPrivateKey(path, passphrase)
	if err != nil {
		t.Fatal(err)
	}
	if got.name != want.name || !got.secret().Equal(want.secret()) {
		t.Errorf("loaded %v, want %v", got, want)
	}
}

func TestKeyFile_WithoutPassphrase(t *testing.T) {
	key, path := saved(t, nil)
	mustLoad(t, path, nil, key)
	mustLoad(t, path, []byte("ignored"), key)
	if encrypted, err := Encrypted(path); err != nil || encrypted {
		t.Errorf("Encrypted = %v, %v", encrypted, err)
	}
}

func TestKeyFile_WithPassphrase(t *testing.T) {
	key, path := saved(t, []byte("correct horse"))
	mustLoad(t, path, []byte("correct horse"), key)
	for _, wrong := range [][]byte{nil, {}, []byte("correct horsf"), []byte("correct horse ")} {
		_, err := LoadPrivateKey(path, wrong)
		mustBe(t, err, ErrPassphrase)
	}
	if encrypted, err := Encrypted(path); err != nil || !encrypted {
		t.Errorf("Encrypted = %v, %v", encrypted, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if file, err := parseKeyFile(data); err != nil || bytes.Contains(file.Seed, key.secret().Seed()) || file.Iterations < 600_000 {
		t.Errorf("the file holds %+v, %v", file, err)
	}
}

func TestKeyFile_EverySaveHasItsOwnSaltAndNonce(t *testing.T) {
	_, first := saved(t, []byte("x"))
	_, second := saved(t, []byte("x"))
	a, err1 := readKeyFile(first)
	b, err2 := readKeyFile(second)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(a.Salt, b.Salt) || bytes.Equal(a.Nonce, b.Nonce) || bytes.Equal(a.Seed, b.Seed) {
		t.Error("two files share salt, nonce or cipher text")
	}
}

func TestSave_MakesModeWhateverTheUmask(t *testing.T) {
	key, dir := newKey(t, "anna"), t.TempDir()
	for _, umask := range []int{0, 0o077, 0o777} {
		path := filepath.Join(dir, fmt.Sprint(umask))
		before := syscall.Umask(umask)
		err := key.Save(path, nil)
		syscall.Umask(before)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
			t.Errorf("umask %#o: %v, %v", umask, info.Mode(), err)
		}
	}
}

func TestSave_NeverReplacesAnything(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	entries := map[string]func(path string) error{
		"file":          func(path string) error { return os.WriteFile(path, []byte("before"), 0o600) },
		"directory":     func(path string) error { return os.Mkdir(path, 0o700) },
		"link":          func(path string) error { return os.Symlink(dir, path) },
		"dangling link": func(path string) error { return os.Symlink(outside, path) },
		"FIFO":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
	}
	for name, create := range entries {
		path := filepath.Join(dir, name)
		if err := create(path); err != nil {
			t.Fatal(err)
		}
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		mustBe(t, newKey(t, "anna").Save(path, nil), fs.ErrExist)
		if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() || after.Size() != before.Size() {
			t.Errorf("%s was changed: %v", name, err)
		}
	}
	if _, err := os.Lstat(outside); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key was written through a dangling link: %v", err)
	}
}

func TestSave_LeavesNothingBehindWhenItFails(t *testing.T) {
	dir := t.TempDir()
	mustBe(t, newKey(t, "anna").Save(filepath.Join(dir, "empty"), []byte{}), ErrPassphrase)
	mustBe(t, PrivateKey{}.Save(filepath.Join(dir, "zero"), nil), ErrKey)
	mustBe(t, newKey(t, "anna").Save(filepath.Join(dir, "missing", "anna.key"), nil), fs.ErrNotExist)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v", entries, err)
	}
}

// A full disk is a limit on the size of files here.
func TestSave_RemovesAFileItCouldNotFill(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 16
	path := filepath.Join(t.TempDir(), "anna.key")
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &none); err != nil {
		t.Fatal(err)
	}
	err := newKey(t, "anna").Save(path, nil)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	mustBe(t, err, syscall.EFBIG)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part of a key was left: %v", err)
	}
}

func TestLoad_RefusesFilesThatAreNotPrivate(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string) (string, error)
		want  error
	}{
		"0644":      {chmod(0o644), ErrKeyFile},
		"0640":      {chmod(0o640), ErrKeyFile},
		"0601":      {chmod(0o601), ErrKeyFile},
		"0700":      {chmod(0o700), ErrKeyFile},
		"set-uid":   {chmod(0o600 | fs.ModeSetuid), ErrKeyFile},
		"0600":      {chmod(0o600), nil},
		"0400":      {chmod(0o400), nil},
		"no file":   {func(_ *testing.T, path string) (string, error) { return path + "x", nil }, fs.ErrNotExist},
		"directory": {func(_ *testing.T, path string) (string, error) { return filepath.Dir(path), nil }, ErrKeyFile},
		"symbolic link": {func(_ *testing.T, path string) (string, error) {
			return path + ".link", os.Symlink(path, path+".link")
		}, ErrKeyFile},
		"dangling link": {func(_ *testing.T, path string) (string, error) {
			return path + ".link", os.Symlink(path+"x", path+".link")
		}, ErrKeyFile},
		"hard link": {func(_ *testing.T, path string) (string, error) {
			return path, os.Link(path, path+".link")
		}, ErrKeyFile},
		"FIFO": {func(_ *testing.T, path string) (string, error) {
			return path + ".fifo", syscall.Mkfifo(path+".fifo", 0o600)
		}, ErrKeyFile},
		"through a linked directory": {func(t *testing.T, path string) (string, error) {
			dir := filepath.Join(t.TempDir(), "keys") // as /var on macOS: the directory is the user's affair
			return filepath.Join(dir, filepath.Base(path)), os.Symlink(filepath.Dir(path), dir)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, path := saved(t, nil)
			path, err := c.spoil(t, path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = LoadPrivateKey(path, nil)
			mustBe(t, err, c.want)
			_, again := Encrypted(path)
			mustBe(t, again, c.want)
			if c.want != nil && !strings.Contains(err.Error(), filepath.Base(path)) {
				t.Errorf("the error does not name the file: %v", err)
			}
		})
	}
}

func chmod(mode fs.FileMode) func(*testing.T, string) (string, error) {
	return func(_ *testing.T, path string) (string, error) { return path, os.Chmod(path, mode) }
}

func TestLoad_SaysThatItIsNoRegularFile(t *testing.T) {
	if _, err := LoadPrivateKey(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
}

// No file of another user is needed to try this: only another idea of who asks.
func TestLoad_RefusesTheFileOfAnotherUser(t *testing.T) {
	_, path := saved(t, nil)
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	mustBe(t, checkKeyFile(info, os.Geteuid()), nil)
	mustBe(t, checkKeyFile(info, os.Geteuid()+1), ErrKeyFile)
}

func TestLoad_RefusesDamagedFiles(t *testing.T) {
	_, path := saved(t, nil)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(whole)
	other := newKey(t, "berta").Public().String()
	damaged := map[string]string{
		"trailing data": text + "{}",
		"white space":   text + "\n",
		"duplicate":     strings.Replace(text, `{`, `{"seed":"",`, 1),
		"extra member":  strings.Replace(text, `{`, `{"a":1,`, 1),
		"other version": strings.Replace(text, keyFormat, "sallyport private key 2", 1),
		"other cipher":  strings.Replace(text, `"none"`, `"rot13"`, 1),
		"other public":  strings.Replace(text, newKey(t, "anna").Public().String(), other, 1),
		"no public":     strings.Replace(text, newKey(t, "anna").Public().String(), "", 1),
		"null":          "null\n",
		"no JSON":       "ed25519",
		"too large":     text + strings.Repeat(" ", maxKeyFile),
	}
	for name, data := range damaged {
		mustBeDamaged(t, path, name, data)
	}
	for n := range text {
		mustBeDamaged(t, path, "cut", text[:n])
	}
}

func mustBeDamaged(t *testing.T, path, name, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadPrivateKey(path, nil); !errors.Is(err, ErrKeyFile) {
		t.Errorf("%s (%d bytes): %v", name, len(data), err)
	}
}

// What surrounds the cipher text is authenticated with it, and the work factor
// is bounded before any work is done.
func TestLoad_RefusesAlteredEncryption(t *testing.T) {
	_, path := saved(t, []byte("x"))
	file, err := readKeyFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		alter func(*keyFile)
		want  error
	}{
		"fewer iterations":       {func(f *keyFile) { f.Iterations = 599_999 }, ErrKeyFile},
		"endless iterations":     {func(f *keyFile) { f.Iterations = maxIterations + 1 }, ErrKeyFile},
		"one iteration more":     {func(f *keyFile) { f.Iterations++ }, ErrPassphrase},
		"other hash":             {func(f *keyFile) { f.KDF = "md5" }, ErrKeyFile},
		"short salt":             {func(f *keyFile) { f.Salt = f.Salt[1:] }, ErrKeyFile},
		"short nonce":            {func(f *keyFile) { f.Nonce = f.Nonce[1:] }, ErrKeyFile},
		"short cipher text":      {func(f *keyFile) { f.Seed = f.Seed[1:] }, ErrKeyFile},
		"declared unencrypted":   {func(f *keyFile) { f.Cipher = cipherNone }, ErrKeyFile},
		"one bit of cipher text": {func(f *keyFile) { f.Seed[0] ^= 1 }, ErrPassphrase},
		"another name":           {func(f *keyFile) { f.Public = strings.Replace(f.Public, "anna", "berta", 1) }, ErrPassphrase},
	} {
		t.Run(name, func(t *testing.T) {
			altered := file
			altered.Seed, altered.Salt, altered.Nonce = bytes.Clone(file.Seed), bytes.Clone(file.Salt), bytes.Clone(file.Nonce)
			c.alter(&altered)
			data, err := altered.encode()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = LoadPrivateKey(path, []byte("x"))
			mustBe(t, err, c.want)
		})
	}
}
