package lab

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
)

// ShowsToken reports whether text has the token or enough of it to matter.
func ShowsToken(text []byte) bool {
	const enough = 12
	for i := 0; i+enough <= len(Token); i++ {
		if bytes.Contains(text, []byte(Token[i:i+enough])) {
			return true
		}
	}
	return false
}

// Written are the folders where certbot and the hooks leave files.
func Written() []string {
	return []string{CertbotDir, CertbotLogs, StateDir, filepath.Dir(HookLog), os.TempDir()}
}

// FilesWithToken searches every regular file below the folders for the token. One of these that does not
// exist holds none.
func FilesWithToken(folders ...string) (found []string, searched int, err error) {
	for _, folder := range folders {
		if _, err := os.Lstat(folder); os.IsNotExist(err) {
			continue
		}
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if ShowsToken(text) {
				found = append(found, path)
			}
			searched++
			return err
		})
		if err != nil {
			return found, searched, err
		}
	}
	return found, searched, nil
}
