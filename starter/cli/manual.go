package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// addManual adds the command that writes the manual pages of all commands of the tree.
func addManual(root *cobra.Command) {
	root.DisableAutoGenTag = true // it contains the present time
	root.AddCommand(&cobra.Command{
		Use:   "man FOLDER",
		Short: "Write the manual pages of starter into a folder",
		Long:  "The packages for Debian contain these pages. SOURCE_DATE_EPOCH sets their date, in seconds since 1970.",
		Args:  checkArguments([]string{"FOLDER"}),
		RunE: func(_ *cobra.Command, args []string) error {
			header := doc.GenManHeader{Section: "1", Source: "berth", Manual: "berth"}
			if err := doc.GenManTree(root, &header, args[0]); err != nil {
				return fmt.Errorf("write the manual pages: %w", err)
			}
			return nil
		},
	})
}
