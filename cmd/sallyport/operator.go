package main

import (
	"cmp"
	"os"
	osuser "os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
)

// operator names who uses this command: the key called as, which must be there, else
// the user's own key if there is just one, else the account that we run under. It is
// whom a contract without `own_key` keeps from being one of several approvers of a run
// that they began, so that it does not follow from the environment.
func (a *app) operator(as, state string) (string, error) {
	home, err := configHome()
	if err != nil {
		return "", err
	}
	own, err := keysIn(filepath.Join(home, keysBelow))
	if err != nil {
		return "", err
	}
	switch {
	case as != "":
		more, err := keysIn(filepath.Join(state, keysBelow))
		if err == nil && !slices.ContainsFunc(append(own, more...), func(r keyRow) bool { return r.Name == as }) {
			err = fail(exitNoKey, "list your keys with: sallyport keys list", "there is no key %q", as)
		}
		return as, err
	case len(own) == 1:
		return own[0].Name, nil
	}
	return account(), nil
}

// account is the name of the account that the process runs under, or its number. On
// Unix [osuser.Current] may believe $USER, which anybody can set.
func account() string {
	if runtime.GOOS == "windows" {
		if u, err := osuser.Current(); err == nil {
			return cmp.Or(u.Username, "operator")
		}
		return "operator"
	}
	id := strconv.Itoa(os.Getuid())
	if u, err := osuser.LookupId(id); err == nil && u.Username != "" {
		return u.Username
	}
	return "uid " + id
}
